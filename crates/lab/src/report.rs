//! The report: one page, nothing remote, every claim with its verdict and every figure.

use std::fmt::Write as _;

use crate::{
    claim::{Claim, Verdict},
    experiment::Experiment,
    figure::Figure,
    store::Manifest,
};

/// An experiment with its results judged and drawn.
pub struct Section<'a> {
    /// Which.
    pub experiment: &'a Experiment,
    /// Its claims.
    pub claims: Vec<Claim>,
    /// Its figures.
    pub figures: Vec<Figure>,
}

/// The page about all sections.
pub fn html(manifest: &Manifest, sections: &[Section<'_>]) -> String {
    let mut page = String::new();
    let Manifest { version, size, seed, .. } = manifest;
    let count = |verdict| {
        sections.iter().flat_map(|section| &section.claims).filter(|c| c.verdict == verdict).count()
    };
    let counts = [Verdict::Reproduced, Verdict::Partly, Verdict::NotReproduced]
        .map(|verdict| format!("{} {verdict}", count(verdict)))
        .join(", ");
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>Bellwether lab report</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<h1>Bellwether lab report</h1>\n\
         <p>{counts}. Version {version}, {size} size, seed {seed}. Intervals are 95%; a closed form is \
         agreed with within four standard errors.</p>\n",
        version = escape(version),
    );
    page.push_str(
        "<table>\n<thead><tr><th>experiment</th><th>claim</th><th>published or analysis</th>\
         <th>measured</th><th>verdict</th></tr></thead>\n<tbody>\n",
    );
    for section in sections {
        for claim in &section.claims {
            claim_row(&mut page, section.experiment.id, claim);
        }
    }
    page.push_str("</tbody>\n</table>\n");
    for Section { experiment, figures, .. } in sections {
        let (id, title) = (escape(experiment.id), escape(experiment.title));
        let _ = write!(
            page,
            "<section id=\"{id}\">\n<h2>{id}</h2>\n<p>{title}. <i>{}</i></p>\n",
            escape(experiment.source)
        );
        for figure in figures {
            let caption = escape(&figure.title);
            let svg = figure.svg();
            let _ =
                write!(page, "<figure>\n{svg}\n<figcaption>{caption}</figcaption>\n</figure>\n");
        }
        page.push_str("</section>\n");
    }
    page.push_str("</body>\n</html>\n");
    page
}

/// The claims as a table in Markdown, for the documentation.
pub fn markdown(manifest: &Manifest, sections: &[Section<'_>]) -> String {
    let Manifest { version, size, seed, .. } = manifest;
    let mut text = format!(
        "# Lab results\n\nVersion {version}, {size} size, seed {seed}. Intervals are 95%.\n\n\
         | experiment | claim | published or analysis | measured | verdict |\n|---|---|---|---|---|\n"
    );
    for section in sections {
        for claim in &section.claims {
            let verdict = match &claim.reason {
                Some(reason) => format!("{}: {reason}", claim.verdict),
                None => claim.verdict.to_string(),
            };
            let cells = [&claim.sentence, &claim.published, &claim.measured, &verdict]
                .map(|cell| cell.replace('|', "\\|"));
            let _ = writeln!(text, "| {} | {} |", section.experiment.id, cells.join(" | "));
        }
    }
    text
}

fn claim_row(page: &mut String, id: &str, claim: &Claim) {
    let class = match claim.verdict {
        Verdict::Reproduced => "yes",
        Verdict::Partly => "partly",
        Verdict::NotReproduced => "no",
    };
    let reason = claim
        .reason
        .as_ref()
        .map_or_else(String::new, |reason| format!("<br><small>{}</small>", escape(reason)));
    let surprise = if claim.as_recorded() {
        String::new()
    } else {
        format!("<br><b>on record: {}</b>", claim.recorded)
    };
    let _ = writeln!(
        page,
        "<tr><td><a href=\"#{id}\">{id}</a></td><td>{}</td><td>{}</td><td>{}</td>\
         <td class=\"{class}\">{}{reason}{surprise}</td></tr>",
        escape(&claim.sentence),
        escape(&claim.published),
        escape(&claim.measured),
        claim.verdict,
        id = escape(id),
    );
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

const STYLE: &str = "\
body{font:16px/1.5 system-ui,sans-serif;max-width:1100px;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}\
table{border-collapse:collapse;width:100%;font-size:14px}\
th,td{border-bottom:1px solid #ddd;padding:.4rem .5rem;text-align:left;vertical-align:top}\
td:first-child{white-space:nowrap}thead th{position:sticky;top:0;background:#f4f4f4}\
td.yes{color:#00643c}td.partly{color:#8a5a00}td.no{color:#a02000}\
figure{margin:1rem 0}figure svg{max-width:100%;height:auto;border:1px solid #ddd}\
figcaption{font-size:14px;color:#555}h2{margin-top:2.5rem}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_whole_escaped_and_refers_to_nothing_remote() {
        let experiment = Experiment {
            id: "announce-fig-0",
            title: "a <b> & c",
            source: "nowhere",
            cells: |_| Vec::new(),
            claims: |_| Vec::new(),
            figures: |_| Vec::new(),
        };
        let table = crate::table::Table::new(crate::experiment::Size::Quick, [].into());
        let claim = table.claim("x < y", "1 | 2").holds("<script>", false).missed("known");
        let sections =
            [Section { experiment: &experiment, claims: vec![claim], figures: Vec::new() }];
        let manifest = Manifest::new(crate::experiment::Size::Quick, 7);
        let page = html(&manifest, &sections);
        assert!(page.contains("a &lt;b&gt; &amp; c") && page.contains("&lt;script&gt;"));
        assert!(!page.contains("<script") && !page.contains("http"));
        assert!(page.contains("0 reproduced, 0 partly, 1 not reproduced"));
        assert!(markdown(&manifest, &sections).contains("1 \\| 2"));
    }
}
