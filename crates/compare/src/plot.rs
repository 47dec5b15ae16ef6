//! The same as bars: a panel for each measure, a bar for each system.

use std::fmt::Write as _;

use bellwether_hosts::Spread;

use crate::{measure::Measured, report::short};

const PANEL: (f64, f64) = (430.0, 190.0);
const COLUMNS: usize = 2;
/// Before the bars, for names; after them, for values.
const MARGINS: (f64, f64) = (110.0, 70.0);
const TOP: f64 = 56.0;
const BAR: f64 = 20.0;
const ROW: f64 = 30.0;

struct Panel {
    title: &'static str,
    bars: Vec<Option<Bar>>,
}

/// A bar up to a value, and a whisker between two others.
struct Bar {
    value: f64,
    whisker: Option<(f64, f64)>,
}

pub(crate) fn svg(all: &[Measured]) -> String {
    let panels = panels(all);
    let rows = panels.len().div_ceil(COLUMNS);
    let (width, height) = (PANEL.0 * COLUMNS as f64, PANEL.1 * rows as f64);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for (index, panel) in panels.iter().enumerate() {
        let x = PANEL.0 * (index % COLUMNS) as f64;
        let y = PANEL.1 * (index / COLUMNS) as f64;
        let _ = writeln!(svg, "<g transform=\"translate({x} {y})\">");
        draw(&mut svg, panel, all);
        svg.push_str("</g>\n");
    }
    svg.push_str("</svg>\n");
    svg
}

fn panels(all: &[Measured]) -> Vec<Panel> {
    let bars = |bar: &dyn Fn(&Measured) -> Option<Bar>| all.iter().map(bar).collect();
    let plain = |value: f64| Some(Bar { value, whisker: None });
    let deviating = |values: &[f64]| {
        let all = Spread::of(values)?;
        let (value, deviation) = (all.mean(), all.deviation());
        let whisker = deviation.map(|deviation| ((value - deviation).max(0.0), value + deviation));
        Some(Bar { value, whisker })
    };
    let ranging = |values: &[f64]| {
        let all = Spread::of(values)?;
        Some(Bar { value: all.median(), whisker: Some((all.least(), all.most())) })
    };
    let panels = [
        ("CPU of a node, % of a core, idle", bars(&|of| plain(of.cpu_percent))),
        ("Memory of a node (PSS), MiB", bars(&|of| plain(of.pss_mib))),
        ("Wire, all nodes, kbit/s, idle (± s.d. of 10 s bins)", bars(&|of| deviating(&of.kbit_s))),
        ("Packets/s, all nodes, idle (± s.d.)", bars(&|of| deviating(&of.packets_s))),
        ("Leader's cable cut: s to the next (median, range)", bars(&|of| ranging(&of.cut_s))),
        ("Leader killed: s to the next (median, range)", bars(&|of| ranging(&of.kill_s))),
    ];
    panels.into_iter().map(|(title, bars)| Panel { title, bars }).collect()
}

fn draw(svg: &mut String, panel: &Panel, all: &[Measured]) {
    let _ = writeln!(svg, "<text x=\"12\" y=\"28\" font-weight=\"bold\">{}</text>", panel.title);
    let reach = |bar: &Bar| [Some(bar.value), bar.whisker.map(|(_, end)| end)];
    let reaches = panel.bars.iter().flatten().flat_map(reach).flatten();
    let most = reaches.filter(|value| value.is_finite()).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let room = PANEL.0 - MARGINS.0 - MARGINS.1;
    let place = |value: f64| MARGINS.0 + room * (value / most).min(1.0);
    for (row, (bar, of)) in panel.bars.iter().zip(all).enumerate() {
        let y = TOP + ROW * row as f64;
        let middle = y + BAR / 2.0;
        let colour = if of.system == "Bellwether" { "#c2562a" } else { "#8a99a8" };
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{} {}</text>",
            MARGINS.0 - 8.0,
            middle + 4.5,
            of.system,
            of.nodes
        );
        let Some(bar) = bar else { continue };
        let (start, end) = (MARGINS.0, place(bar.value));
        let _ = writeln!(
            svg,
            "<rect x=\"{start}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{BAR}\" fill=\"{colour}\"/>",
            (end - start).max(1.0)
        );
        let mut after = end;
        if let Some((low, high)) = bar.whisker {
            let (low, high) = (place(low), place(high));
            let (top, bottom) = (middle - 4.0, middle + 4.0);
            let _ = writeln!(
                svg,
                "<path d=\"M{low:.1} {middle:.1}H{high:.1}M{low:.1} {top:.1}V{bottom:.1}M{high:.1} \
                 {top:.1}V{bottom:.1}\" stroke=\"#222\" fill=\"none\"/>"
            );
            after = after.max(high);
        }
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            after + 6.0,
            middle + 4.5,
            short(bar.value)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::two;

    #[test]
    fn every_system_has_a_bar_in_every_panel_it_was_measured_for() {
        let svg = svg(&two());
        assert_eq!(svg.matches("<g ").count(), 6);
        // The background, five panels with both, and one without either.
        assert_eq!(svg.matches("<rect").count(), 1 + 5 * 2, "{svg}");
        assert!(!svg.contains("inf") && !svg.contains("NaN"), "{svg}");
        assert_eq!(svg.matches("never").count(), 0);
    }
}
