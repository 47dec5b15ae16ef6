//! How many lists to compare: table 7.1.

use bellwether_proto::churn::sample_size::Precision;

use super::*;
use crate::analysis::churn::sample::{CONFIDENCES, MARGINS, TABLE_7_1, coverage, table};
use crate::estimate::least;

pub(super) fn all() -> Vec<Experiment> {
    vec![Experiment {
        id: "wang-tab-7.1",
        title: "How many lists to compare for a given margin and confidence",
        source: "Table 7.1",
        cells: |_| vec![Cell::computed(FORMULAS, Computation::new(FORMULAS, (), formulas), 1)],
        claims,
        figures: |_| Vec::new(),
    }]
}

const FORMULAS: &str = "sample sizes";

type Rule = fn(Precision) -> u32;

/// The rules: the formula as printed, with the quantile it wants, and that for a group of so many.
const RULES: [(&str, Rule); 4] = [
    ("published", |precision| libm::round(precision.published()) as u32),
    ("corrected", |precision| libm::ceil(precision.corrected()) as u32),
    ("of 1000", |precision| precision.lists(1_000)),
    ("of 128", |precision| precision.lists(128)),
];

measure!(
    /// How many lists a rule takes for a margin and a confidence.
    Lists(rule: &'static str, margin: f64, confidence: f64) = "{rule} E={margin} x={confidence}"
);
measure!(
    /// How often so many lists are right.
    Right(of: Lists) = "{of} holds"
);

fn lists(rule: &'static str, (row, column): (usize, usize)) -> Lists {
    Lists(rule, MARGINS[row], CONFIDENCES[column])
}

fn formulas((): &(), _: u64) -> Found {
    let mut values = Vec::new();
    let mut of = [[[0; 2]; 3]; 4];
    for (sizes, (name, rule)) in of.iter_mut().zip(RULES) {
        *sizes = table(rule);
        for (row, column) in places() {
            values.push(Value::count(lists(name, (row, column)), f64::from(sizes[row][column])));
        }
    }
    // Of so many that how many there are does not matter.
    for (name, sizes) in [("published", of[0]), ("corrected", of[1])] {
        for (row, column) in places() {
            let holds = coverage(100_000, 10_000, sizes[row][column], MARGINS[row]);
            values.push(Value::ratio(Right(lists(name, (row, column))), holds));
        }
    }
    Ok(values)
}

fn places() -> impl Iterator<Item = (usize, usize)> {
    (0..MARGINS.len()).flat_map(|row| (0..CONFIDENCES.len()).map(move |column| (row, column)))
}

fn claims(data: &Table) -> Vec<Claim> {
    let exactly = |sentence: &str, rule, wanted: [[u32; 2]; 3]| {
        let written = |of: &dyn Fn(usize, usize) -> f64| {
            [0, 1, 2].map(|row| format!("{} {}", of(row, 0), of(row, 1))).join(" / ")
        };
        let wanted = written(&|row, column| f64::from(wanted[row][column]));
        let found =
            written(&|row, column| data.estimate(FORMULAS, lists(rule, (row, column))).value);
        let holds = wanted == found;
        data.claim(sentence, wanted).holds(found, holds)
    };
    // By how much the one that promises most too much falls short, what it promises, and both in words.
    let least_right = |rule| {
        let off = |place: (usize, usize)| {
            let promised = CONFIDENCES[place.1];
            (promised, data.estimate(FORMULAS, Right(lists(rule, place))) - promised)
        };
        let (promised, off) = least(places().map(off)).unwrap_or((0.0, Estimate::NOTHING));
        (off + promised, off, format!("{} for {promised}", short(off.value + promised)))
    };
    let (share, _, published) = least_right("published");
    let (_, off, corrected) = least_right("corrected");
    vec![
        exactly(
            "The printed formula gives the table (E = 2, 5, 10%; x = 90, 95%), rounded to nearest",
            "published",
            TABLE_7_1,
        ),
        exactly(
            "With the normal quantile and rounded up it takes 3 to 4 times as many",
            "corrected",
            [[609, 865], [98, 139], [25, 35]],
        ),
        exactly("Of 1000 nodes fewer will do", "of 1000", [[379, 464], [89, 122], [24, 34]]),
        exactly("And of 128", "of 128", [[106, 112], [56, 67], [21, 28]]),
        data
            .claim("The table's sizes do not hold what they promise: how often the worst is right", "90 and 95%")
            .showing(published)
            .at_most(share, 0.7),
        data
            .claim(
                "The corrected ones do, but for the normal approximation: how much less often than promised they are right",
                "90 and 95%",
            )
            .showing(corrected)
            .at_most(off * -1.0, 0.03),
    ]
}
