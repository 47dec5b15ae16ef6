//! Figures: measured points with error bars beside analytic curves, as SVG.

use std::ops::Range;

use plotters::{
    coord::{
        Shift,
        ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter},
    },
    prelude::*,
};

use crate::{
    estimate::{Estimate, short},
    measure::Measure,
    table::Table,
};

/// A plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The name of its file, without an ending.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// What the horizontal axis is, with its unit.
    pub x: Axis,
    /// What the vertical axis is, with its unit.
    pub y: Axis,
    /// What is drawn.
    pub series: Vec<Series>,
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What stands beside it.
    pub label: String,
    /// Whether equal distances are equal ratios.
    pub log: bool,
    /// What stands at 1, 2 and so on, if those are no quantities.
    pub names: Vec<String>,
}

impl Axis {
    /// Equal distances are equal differences.
    pub fn linear(label: impl Into<String>) -> Self {
        Self { label: label.into(), log: false, names: Vec::new() }
    }

    /// Equal distances are equal ratios.
    pub fn log(label: impl Into<String>) -> Self {
        Self { label: label.into(), log: true, names: Vec::new() }
    }

    /// Names, the first of them at 1.
    pub fn named<Name: Into<String>>(
        label: impl Into<String>,
        names: impl IntoIterator<Item = Name>,
    ) -> Self {
        let names = names.into_iter().map(Into::into).collect();
        Self { label: label.into(), log: false, names }
    }
}

/// An axis with its ends: what maps values to pixels and chooses the ticks.
struct Scale {
    log: bool,
    /// The ends, as logarithms where the axis is logarithmic.
    low: f64,
    high: f64,
    names: Vec<String>,
}

impl Scale {
    /// Spans all names, or all finite values with some room; a linear one starts from zero if nothing is below.
    fn over(axis: &Axis, values: impl Iterator<Item = f64>, room: f64) -> Self {
        let names = axis.names.clone();
        if !names.is_empty() {
            return Self { log: false, low: 0.5, high: names.len() as f64 + 0.5, names };
        }
        let mut scale = Self { log: axis.log, low: f64::INFINITY, high: f64::NEG_INFINITY, names };
        for value in values {
            let place = scale.place(value);
            if !place.is_finite() {
                continue;
            }
            scale.low = scale.low.min(place);
            scale.high = scale.high.max(place);
        }
        if scale.low > scale.high {
            return Self { low: 0.0, high: 1.0, ..scale };
        }
        let room = if scale.high > scale.low { (scale.high - scale.low) * room } else { 0.5 };
        scale.high += room;
        scale.low = if !axis.log && scale.low >= 0.0 { 0.0 } else { scale.low - room };
        scale
    }

    fn place(&self, value: f64) -> f64 {
        if self.log { libm::log10(value) } else { value }
    }

    /// How far along the axis, from 0 to 1.
    fn share(&self, value: f64) -> f64 {
        (self.place(value) - self.low) / (self.high - self.low)
    }

    fn value(&self, place: f64) -> f64 {
        if self.log { libm::pow(10.0, place) } else { place }
    }
}

impl Ranged for Scale {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        from + libm::round(f64::from(to - from) * self.share(*value)) as i32
    }

    /// Round values: 1, 2 and 5 times powers of ten, or multiples of one of them. Names are all there.
    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        if !self.names.is_empty() {
            return (1..=self.names.len()).map(|place| place as f64).collect();
        }
        let steps = |exponent: i32| {
            [1.0, 2.0, 5.0].map(|digit| digit * libm::pow(10.0, f64::from(exponent)))
        };
        if self.log {
            let exponents = libm::floor(self.low) as i32..=libm::ceil(self.high) as i32;
            let inside = |value: &f64| (self.low..=self.high).contains(&self.place(*value));
            return exponents.flat_map(steps).filter(inside).collect();
        }
        let span = self.high - self.low;
        let exponent = libm::floor(libm::log10(span)) as i32;
        let mut steps = (exponent - 2..=exponent).flat_map(steps);
        let step = steps.find(|step| span / step <= 10.0).unwrap_or(span);
        let first = libm::ceil(self.low / step) as i64;
        let last = libm::floor(self.high / step) as i64;
        (first..=last).map(|count| count as f64 * step).collect()
    }

    fn range(&self) -> Range<f64> {
        self.value(self.low)..self.value(self.high)
    }
}

impl ValueFormatter<f64> for Scale {
    fn format(value: &f64) -> String {
        let text = short(*value);
        match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
            false => text,
        }
    }

    fn format_ext(&self, value: &f64) -> String {
        let name = self.names.get((*value as usize).wrapping_sub(1));
        name.cloned().unwrap_or_else(|| Self::format(value))
    }
}

/// One row of points or one curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What the legend calls it; without a name, as a line through points that have one, it is not listed.
    pub name: String,
    /// Which colour; a curve shares that of the points it predicts.
    pub colour: usize,
    /// How it is drawn.
    pub line: bool,
    /// From left to right.
    pub points: Vec<(f64, Estimate)>,
}

impl Series {
    /// Points with 95% intervals.
    pub fn measured(
        name: impl Into<String>,
        colour: usize,
        points: impl IntoIterator<Item = (f64, Estimate)>,
    ) -> Self {
        let points = points.into_iter().filter(|(_, y)| y.is_there()).collect();
        Self { name: name.into(), colour, line: false, points }
    }

    /// Points of a table: for each `x`, the measure of the cell with that name.
    pub fn cells(
        name: impl Into<String>,
        colour: usize,
        table: &Table,
        measure: impl Measure + Copy,
        cells: impl IntoIterator<Item = (f64, String)>,
    ) -> Self {
        let estimate = |(x, cell): (f64, String)| (x, table.estimate(cell, measure));
        Self::measured(name, colour, cells.into_iter().map(estimate))
    }

    /// A curve.
    pub fn analytic(
        name: impl Into<String>,
        colour: usize,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        let exact = |(x, y)| (x, Estimate::exact(y));
        Self { line: true, ..Self::measured(name, colour, points.into_iter().map(exact)) }
    }

    /// Where it is to be seen: dots and the ends of their bars, or some places along a line.
    fn inked(&self, place: impl Fn(f64, f64) -> (f64, f64)) -> Vec<(f64, f64)> {
        if !self.line {
            let ends = |&(x, y): &(f64, Estimate)| {
                [-1.0, 0.0, 1.0].map(|end| place(x, y.value + end * y.half_width()))
            };
            return self.points.iter().flat_map(ends).collect();
        }
        let at = |(x, y): &(f64, Estimate)| place(*x, y.value);
        let between = |pair: &[(f64, Estimate)]| {
            let [(ax, ay), (bx, by)] = [at(&pair[0]), at(&pair[1])];
            (0..=8)
                .map(|part| f64::from(part) / 8.0)
                .map(move |part| (ax + part * (bx - ax), ay + part * (by - ay)))
        };
        self.points.windows(2).flat_map(between).collect()
    }
}

impl Figure {
    /// Of this name.
    pub fn new(
        name: impl Into<String>,
        title: impl Into<String>,
        (x, y): (Axis, Axis),
        series: impl IntoIterator<Item = Series>,
    ) -> Self {
        let series = series.into_iter().collect();
        Self { name: name.into(), title: title.into(), x, y, series }
    }

    /// Draws it.
    pub fn svg(&self) -> String {
        let mut svg = String::new();
        {
            let area = SVGBackend::with_string(&mut svg, (WIDTH, HEIGHT)).into_drawing_area();
            self.draw(&area).expect("drawing into a string cannot fail");
        }
        svg
    }

    /// About what its legend takes of both axes: a little more than the glyphs of its names need.
    fn legend(&self) -> (f64, f64) {
        let names =
            || self.series.iter().map(|series| series.name.chars().count()).filter(|&n| n > 0);
        let longest = names().max().unwrap_or(0);
        let (width, height) = (60.0 + 7.5 * longest as f64, 30.0 + 17.0 * names().count() as f64);
        (width / f64::from(WIDTH - 86), height / f64::from(HEIGHT - 68))
    }

    fn draw(
        &self,
        area: &DrawingArea<SVGBackend<'_>, Shift>,
    ) -> Result<(), DrawingAreaErrorKind<std::io::Error>> {
        area.fill(&WHITE)?;
        let points = || self.series.iter().flat_map(|series| &series.points);
        let xs = points().map(|(x, _)| *x);
        let ys =
            points().flat_map(|(_, y)| [-1.0, 0.0, 1.0].map(|end| y.value + end * y.half_width()));
        let x = Scale::over(&self.x, xs, 0.04);
        let y = Scale::over(&self.y, ys, 0.06);
        let place = |at: f64, of: f64| (x.share(at), y.share(of));
        let inked = self.series.iter().flat_map(|series| series.inked(place));
        let legend = freest_corner(self.legend(), inked);
        let mut chart = ChartBuilder::on(area)
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(62)
            .build_cartesian_2d(x, y)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(BLACK.mix(0.12))
            .x_desc(self.x.label.as_str())
            .y_desc(self.y.label.as_str())
            .axis_desc_style(("sans-serif", 15))
            .label_style(("sans-serif", 13))
            .draw()?;
        for series in &self.series {
            let colour = COLOURS[series.colour % COLOURS.len()];
            let at = |(x, y): &(f64, Estimate)| (*x, y.value);
            if series.line {
                let line = LineSeries::new(series.points.iter().map(at), colour.stroke_width(2));
                let drawn = chart.draw_series(line)?;
                if !series.name.is_empty() {
                    drawn.label(series.name.as_str()).legend(move |(x, y)| {
                        PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2))
                    });
                }
                continue;
            }
            // On a logarithmic axis a bar that reaches zero has no lower end to draw.
            let drawable = |&&(_, y): &&(f64, Estimate)| !self.y.log || y.value > y.half_width();
            let bars = series.points.iter().filter(drawable).map(|&(x, y)| {
                let (low, high) = (y.value - y.half_width(), y.value + y.half_width());
                ErrorBar::new_vertical(x, low, y.value, high, colour.stroke_width(1), 7)
            });
            chart.draw_series(bars)?;
            let placed = series.points.iter().filter(|(_, y)| !self.y.log || y.value > 0.0);
            let dots = placed.map(|point| Circle::new(at(point), 3, colour.filled()));
            chart
                .draw_series(dots)?
                .label(series.name.as_str())
                .legend(move |(x, y)| Circle::new((x + 9, y), 3, colour.filled()));
        }
        chart
            .configure_series_labels()
            .position(legend)
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.2))
            .label_font(("sans-serif", 13))
            .draw()?;
        area.present()
    }
}

/// Where a legend of such a size hides the fewest of these points; all of it as shares of both axes.
fn freest_corner(
    (width, height): (f64, f64),
    points: impl Iterator<Item = (f64, f64)>,
) -> SeriesLabelPosition {
    use SeriesLabelPosition::{LowerLeft, LowerRight, UpperLeft, UpperRight};
    let mut hidden = [0; 4];
    for (x, y) in points {
        for (count, is_there) in hidden.iter_mut().zip([
            x < width && y > 1.0 - height,
            x > 1.0 - width && y > 1.0 - height,
            x > 1.0 - width && y < height,
            x < width && y < height,
        ]) {
            *count += u32::from(is_there);
        }
    }
    let corners = hidden.into_iter().zip([UpperLeft, UpperRight, LowerRight, LowerLeft]);
    corners.min_by_key(|(hidden, _)| *hidden).map_or(UpperLeft, |(_, corner)| corner)
}

const WIDTH: u32 = 720;
const HEIGHT: u32 = 420;
/// Distinct for common kinds of colour blindness.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
];

#[cfg(test)]
mod tests {
    use plotters::coord::ranged1d::BoldPoints;

    use super::*;

    fn figure(log: bool) -> Figure {
        let axis = |label: &str| Axis { log, ..Axis::linear(label) };
        let bar = Estimate::known(2.0, 0.25);
        Figure {
            name: "f".into(),
            title: "t".into(),
            x: axis("processes"),
            y: axis("seconds"),
            series: vec![
                Series::measured("seen", 0, [(1.0, bar), (10.0, Estimate::NOTHING)]),
                Series::analytic("expected <&>", 0, [(1.0, 2.0), (10.0, 3.0)]),
            ],
        }
    }

    #[test]
    fn a_figure_is_a_whole_svg_with_its_words() {
        for log in [false, true] {
            let svg = figure(log).svg();
            assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
            for word in ["processes", "seconds", "seen", "expected &lt;&amp;&gt;"] {
                assert!(svg.contains(word), "{word} is missing");
            }
            assert!(!svg.contains("NaN") && !svg.contains("inf"));
        }
    }

    #[test]
    fn ticks_are_round() {
        let ticks = |axis: Axis, low, high| {
            let scale = Scale::over(&axis, [low, high].into_iter(), 0.0);
            let points = scale.key_points(BoldPoints(10));
            points.iter().map(|value| scale.format_ext(value)).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(ticks(Axis::log(""), 1.7, 600.0), "2 5 10 20 50 100 200 500");
        assert_eq!(ticks(Axis::linear(""), 0.3, 7.9), "0 1 2 3 4 5 6 7");
        assert_eq!(
            ticks(Axis::linear(""), -0.4, 0.52),
            "-0.4 -0.3 -0.2 -0.1 0 0.1 0.2 0.3 0.4 0.5"
        );
        assert_eq!(ticks(Axis::named("", ["moving", "still"]), 0.9, 2.1), "moving still");
    }

    #[test]
    fn a_line_without_a_name_is_drawn_and_not_listed() {
        let lines = |figure: &Figure| figure.svg().matches("<polyline").count();
        let mut one = figure(false);
        let before = lines(&one);
        one.series[1].name.clear();
        // The legend's own stroke is a line as well.
        assert_eq!(lines(&one), before - 1);
        assert!(!one.svg().contains("expected"));
    }

    #[test]
    fn the_legend_stands_where_it_hides_least() {
        use SeriesLabelPosition::{LowerRight, UpperLeft, UpperRight};
        let corner = |points: &[(f64, f64)]| freest_corner((0.3, 0.4), points.iter().copied());
        assert!(matches!(corner(&[]), UpperLeft));
        assert!(matches!(corner(&[(0.9, 0.9)]), UpperLeft));
        assert!(matches!(corner(&[(0.1, 0.9)]), UpperRight));
        assert!(matches!(corner(&[(0.1, 0.9), (0.5, 0.9), (0.9, 0.9)]), LowerRight));
    }

    #[test]
    fn bars_and_lines_are_not_hidden_either() {
        let place = |x, y| (x, y);
        let dot = Series::measured("seen", 0, [(1.0, Estimate::ranging(2.0, 0.5))]);
        assert_eq!(dot.inked(place), [(1.0, 1.5), (1.0, 2.0), (1.0, 2.5)]);
        let line = Series::analytic("expected", 0, [(0.0, 0.0), (8.0, 4.0)]);
        assert!(line.inked(place).contains(&(4.0, 2.0)), "halfway");
    }

    #[test]
    fn zero_has_no_place_on_a_logarithmic_axis() {
        let mut one = figure(true);
        let dots = |figure: &Figure| figure.svg().matches("<circle").count();
        let before = dots(&one);
        one.series[0].points.push((5.0, Estimate::exact(0.0)));
        assert_eq!(dots(&one), before);
    }

    #[test]
    fn nothing_to_draw_is_drawn_as_nothing() {
        let empty = Figure { series: Vec::new(), ..figure(false) };
        assert!(empty.svg().starts_with("<svg"));
    }
}
