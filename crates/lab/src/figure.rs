//! Figures: measured points with error bars beside analytic curves, as SVG.

use plotters::{coord::Shift, prelude::*};

use crate::{
    claim::{Estimate, short},
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
}

impl Axis {
    /// Equal distances are equal differences.
    pub fn linear(label: impl Into<String>) -> Self {
        Self { label: label.into(), log: false }
    }

    /// Equal distances are equal ratios.
    pub fn log(label: impl Into<String>) -> Self {
        Self { label: label.into(), log: true }
    }

    fn place(&self, value: f64) -> f64 {
        if self.log { libm::log10(value) } else { value }
    }

    fn tick(&self, place: f64) -> String {
        let value = if self.log { libm::pow(10.0, place) } else { place };
        let text = short(value);
        match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
            false => text,
        }
    }
}

/// One row of points or one curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What the legend calls it.
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
        points: impl IntoIterator<Item = (f64, Option<Estimate>)>,
    ) -> Self {
        let points = points.into_iter().filter_map(|(x, y)| Some((x, y?))).collect();
        Self { name: name.into(), colour, line: false, points }
    }

    /// Points of a table: for each `x`, the metric of the cell with that name.
    pub fn cells(
        name: impl Into<String>,
        colour: usize,
        table: &Table,
        metric: &str,
        cells: impl IntoIterator<Item = (f64, String)>,
    ) -> Self {
        let estimate = |(x, cell): (f64, String)| (x, table.estimate(&cell, metric));
        Self::measured(name, colour, cells.into_iter().map(estimate))
    }

    /// A curve.
    pub fn analytic(
        name: impl Into<String>,
        colour: usize,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        let exact = |(x, y)| (x, Estimate::exact(y));
        Self {
            name: name.into(),
            colour,
            line: true,
            points: points.into_iter().map(exact).collect(),
        }
    }
}

impl Figure {
    /// Draws it.
    pub fn svg(&self) -> String {
        let mut svg = String::new();
        {
            let area = SVGBackend::with_string(&mut svg, (WIDTH, HEIGHT)).into_drawing_area();
            self.draw(&area).expect("drawing into a string cannot fail");
        }
        svg
    }

    fn draw(
        &self,
        area: &DrawingArea<SVGBackend<'_>, Shift>,
    ) -> Result<(), DrawingAreaErrorKind<std::io::Error>> {
        area.fill(&WHITE)?;
        let (xs, ys) = self.ranges();
        let mut chart = ChartBuilder::on(area)
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(62)
            .build_cartesian_2d(xs.0..xs.1, ys.0..ys.1)?;
        chart
            .configure_mesh()
            .light_line_style(BLACK.mix(0.04))
            .bold_line_style(BLACK.mix(0.12))
            .x_desc(self.x.label.as_str())
            .y_desc(self.y.label.as_str())
            .x_label_formatter(&|place| self.x.tick(*place))
            .y_label_formatter(&|place| self.y.tick(*place))
            .axis_desc_style(("sans-serif", 15))
            .label_style(("sans-serif", 13))
            .draw()?;
        for series in &self.series {
            let colour = COLOURS[series.colour % COLOURS.len()];
            let at = |(x, y): &(f64, Estimate)| (self.x.place(*x), self.y.place(y.value));
            if series.line {
                let line = LineSeries::new(series.points.iter().map(at), colour.stroke_width(2));
                chart.draw_series(line)?.label(series.name.as_str()).legend(move |(x, y)| {
                    PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2))
                });
                continue;
            }
            let bars = series.points.iter().filter_map(|&(x, y)| {
                let low = self.y.place(y.value - y.half_width);
                let high = self.y.place(y.value + y.half_width);
                let (x, middle) = (self.x.place(x), self.y.place(y.value));
                let style = colour.stroke_width(1);
                low.is_finite().then(|| ErrorBar::new_vertical(x, low, middle, high, style, 7))
            });
            chart.draw_series(bars)?;
            let dots = series.points.iter().map(|point| Circle::new(at(point), 3, colour.filled()));
            chart
                .draw_series(dots)?
                .label(series.name.as_str())
                .legend(move |(x, y)| Circle::new((x + 9, y), 3, colour.filled()));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.2))
            .label_font(("sans-serif", 13))
            .draw()?;
        area.present()
    }

    /// What both axes must span, with a little room.
    fn ranges(&self) -> ((f64, f64), (f64, f64)) {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let xs = points().map(|(x, _)| self.x.place(*x));
        let ys = points().flat_map(|(_, y)| {
            [y.value - y.half_width, y.value, y.value + y.half_width].map(|y| self.y.place(y))
        });
        (span(xs, 0.04, None), span(ys, 0.06, (!self.y.log).then_some(0.0)))
    }
}

/// From the least to the greatest finite value, and `room` more on both sides; from `floor`, if nothing is
/// below it.
fn span(values: impl Iterator<Item = f64>, room: f64, floor: Option<f64>) -> (f64, f64) {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for value in values.filter(|value| value.is_finite()) {
        low = low.min(value);
        high = high.max(value);
    }
    if low > high {
        return (0.0, 1.0);
    }
    let room = if high > low { (high - low) * room } else { 0.5 };
    match floor {
        Some(floor) if low >= floor => (floor, high + room),
        _ => (low - room, high + room),
    }
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
    use super::*;

    fn figure(log: bool) -> Figure {
        let axis = |label: &str| Axis { label: label.into(), log };
        let bar = Estimate { value: 2.0, half_width: 0.5 };
        Figure {
            name: "f".into(),
            title: "t".into(),
            x: axis("processes"),
            y: axis("seconds"),
            series: vec![
                Series::measured("seen", 0, [(1.0, Some(bar)), (10.0, None)]),
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
    fn nothing_to_draw_is_drawn_as_nothing() {
        let empty = Figure { series: Vec::new(), ..figure(false) };
        assert!(empty.svg().starts_with("<svg"));
    }
}
