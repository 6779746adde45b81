//! `gridloom show`: a graph in a file, as a tree, a picture or a page.

use std::collections::HashMap;
use std::path::Path;

use gridloom_view::{Graph, Picture};

use crate::Failure;
use crate::args::Show;

/// The version of the profiles that are read.
const VERSION: u32 = 1;

/// Runs the subcommand.
pub(crate) fn run(options: &Show) -> Result<(), Failure> {
    let destination = crate::files::open(options.output.as_deref())?;
    let picture = read(&options.file)?;
    let profile = options.profile.as_deref().map(|path| read_profile(path, &picture)).transpose()?;
    let form = &options.form;
    let text = if form.dot {
        picture.to_dot()
    } else if form.mermaid {
        picture.to_mermaid()
    } else if form.svg {
        picture.to_svg()
    } else if form.html {
        picture.to_html(profile.as_ref())
    } else if form.json {
        serde_json::to_string_pretty(&picture)? + "\n"
    } else {
        picture.to_tree()
    };
    match destination {
        Some(destination) => destination.write_and_tell(text.as_bytes()),
        None => crate::output::write(&text),
    }
}

/// Reads a graph from a file, with its name as the title where it has none of its own.
pub(crate) fn read(path: &Path) -> Result<Picture, Failure> {
    let name = path.display();
    let bytes = crate::saved::read(path)?;
    let mut picture = gridloom_view::read_bytes(&bytes).map_err(|error| format!("{name}: {error}"))?;
    if picture.title == "graph"
        && path.as_os_str() != "-"
        && let Some(stem) = path.file_stem()
    {
        picture.title = stem.to_string_lossy().into_owned();
    }
    Ok(picture)
}

/// Reads a profile of this graph.
fn read_profile(path: &Path, picture: &Picture) -> Result<serde_json::Value, Failure> {
    let name = path.display();
    let refuse = |error: &dyn std::fmt::Display| {
        Failure::from(format!("{name}: this is no profile that Gridloom wrote: {error}"))
    };
    let profile: serde_json::Value =
        serde_json::from_str(&crate::files::read_text(path)?).map_err(|error| refuse(&error))?;
    if profile["format"] != "gridloom-profile" || profile["version"] != VERSION {
        return Err(refuse(&format!("it lacks the format gridloom-profile of version {VERSION}")));
    }
    // The page relies on every field.
    let times =
        <gridloom::Profile as serde::Deserialize>::deserialize(&profile).map_err(|error| refuse(&error))?;
    let mut kinds = HashMap::new();
    kinds_in(&picture.graph, &mut kinds);
    match times.nodes.iter().find(|row| kinds.get(&row.id) != Some(&&*row.kind)) {
        Some(row) => Err(format!(
            "{name}: this is a profile of another graph, or of one that DOT describes with other numbers: its node {} is a {} ({}); pass the saved graph or its JSON",
            row.id, row.kind, row.name
        )
        .into()),
        None => Ok(profile),
    }
}

/// Collects the kinds of all nodes by their numbers.
fn kinds_in<'a>(graph: &'a Graph, kinds: &mut HashMap<usize, &'a str>) {
    for node in &graph.nodes {
        kinds.insert(node.id, &node.kind);
        node.bodies.iter().for_each(|body| kinds_in(&body.graph, kinds));
    }
}
