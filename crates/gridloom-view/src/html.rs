//! One self-contained page. It makes no requests and needs no build step.

use crate::picture::Picture;

const PAGE: &str = include_str!("../page/page.html");
const CSS: &str = include_str!("../page/page.css");
/// The scripts, in the order of their dependencies.
const SCRIPTS: [&str; 7] = [
    include_str!("../page/model.js"),
    include_str!("../page/colours.js"),
    include_str!("../page/layout.js"),
    include_str!("../page/stage.js"),
    include_str!("../page/panel.js"),
    include_str!("../page/timeline.js"),
    include_str!("../page/main.js"),
];

impl Picture {
    /// Returns the page, with the timeline of one launch if a profile in JSON is given.
    ///
    /// The page contains everything it needs, and its content security policy forbids requests.
    pub fn to_html(&self, profile: Option<&serde_json::Value>) -> String {
        let picture = serde_json::to_string(self).unwrap_or_default();
        let profile = profile.map_or_else(|| "null".to_owned(), ToString::to_string);
        let mut page = String::with_capacity(PAGE.len() + picture.len() + profile.len() + (64 << 10));
        let mut rest = PAGE;
        while let Some((before, after)) = rest.split_once("{{") {
            page.push_str(before);
            let (name, after) = after.split_once("}}").unwrap_or((after, ""));
            match name {
                "title" => page.push_str(&escape(&self.title)),
                "css" => page.push_str(CSS),
                "js" => SCRIPTS.iter().for_each(|script| page.push_str(script)),
                "picture" => page.push_str(&inside_script(&picture)),
                "profile" => page.push_str(&inside_script(&profile)),
                _ => {}
            }
            rest = after;
        }
        page.push_str(rest);
        page
    }
}

/// Escapes JSON so that it cannot end the script element around it or begin a comment there.
fn inside_script(json: &str) -> String {
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

/// Escapes text for the content of an element or attribute.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // Characters that XML does not allow.
            control if control.is_control() && control != '\n' && control != '\t' => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}
