//! How many lists to compare: table 7.1.

use bellwether_proto::churn::sample_size::Precision;

use crate::{
    analysis::churn::sample::{CONFIDENCES, MARGINS, TABLE_7_1, coverage, table},
    claim::{Claim, short},
    computation::{Computation, Found, Value},
    experiment::{Cell, Experiment},
    table::Table,
};

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

fn place(rule: &str, row: usize, column: usize) -> String {
    format!("{rule} E={} x={}", MARGINS[row], CONFIDENCES[column])
}

fn formulas((): &(), _: u64) -> Found {
    let mut values = Vec::new();
    let mut of = [[[0; 2]; 3]; 4];
    for (sizes, (name, rule)) in of.iter_mut().zip(RULES) {
        *sizes = table(rule);
        for (row, column) in places() {
            values.push(Value::count(place(name, row, column), f64::from(sizes[row][column])));
        }
    }
    // Of so many that how many there are does not matter.
    for (name, sizes) in [("published", of[0]), ("corrected", of[1])] {
        for (row, column) in places() {
            let holds = coverage(100_000, 10_000, sizes[row][column], MARGINS[row]);
            values.push(Value::ratio(format!("{} holds", place(name, row, column)), holds));
        }
    }
    Ok(values)
}

fn places() -> impl Iterator<Item = (usize, usize)> {
    (0..MARGINS.len()).flat_map(|row| (0..CONFIDENCES.len()).map(move |column| (row, column)))
}

fn claims(table: &Table) -> Vec<Claim> {
    let sizes = |rule: &str| {
        let at = |(row, column)| Some(table.summary(FORMULAS, &place(rule, row, column))?.mean);
        places().map(at).collect::<Option<Vec<f64>>>()
    };
    let exactly = |sentence: &str, rule: &str, wanted: [[u32; 2]; 3]| {
        let wanted: Vec<f64> = wanted.iter().flatten().map(|&size| f64::from(size)).collect();
        let found = sizes(rule);
        let written = |sizes: &[f64]| {
            sizes
                .chunks(2)
                .map(|row| format!("{} {}", row[0], row[1]))
                .collect::<Vec<_>>()
                .join(" / ")
        };
        Claim::holds(
            sentence,
            written(&wanted),
            found.as_deref().map_or_else(|| "nothing".into(), written),
            found.as_ref() == Some(&wanted),
        )
    };
    let least = |rule: &str| {
        let holds = |(row, column)| {
            let promised = CONFIDENCES[column];
            let metric = format!("{} holds", place(rule, row, column));
            Some((table.summary(FORMULAS, &metric)?.mean - promised, promised))
        };
        let all = places().map(holds).collect::<Option<Vec<_>>>()?;
        all.into_iter().min_by(|a, b| a.0.total_cmp(&b.0))
    };
    let said = |rule: &str| {
        least(rule).map_or_else(
            || "nothing".into(),
            |(off, promised)| format!("{} for {promised}", short(promised + off)),
        )
    };
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
        Claim::holds(
            "The table's sizes do not hold what they promise: the worst is right less than 70% of the time",
            "90 and 95%",
            said("published"),
            least("published").is_some_and(|(off, promised)| promised + off < 0.7),
        ),
        Claim::holds(
            "The corrected ones do, within 3 points for the normal approximation",
            "90 and 95%",
            said("corrected"),
            least("corrected").is_some_and(|(off, _)| off >= -0.03),
        ),
    ]
}
