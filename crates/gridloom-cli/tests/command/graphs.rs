//! Saved graphs: run, shown, compared and profiled.

use serde_json::Value;

use crate::support::{Folder, expect_success, fails, gridloom, gridloom_with_input, succeeds, text};

/// Saves a demonstration and returns the name of the file.
fn saved(folder: &Folder, demo: &str, more: &[&str]) -> String {
    let file = folder.path(&format!("{demo}{}.gridloom", more.join("")));
    succeeds(&[&["demo", demo, "--device", "cpu", "--save", &file], more].concat());
    file
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn a_saved_demonstration_runs_with_inputs_and_outputs() {
    let folder = Folder::new("run");
    let file = saved(&folder, "heat", &[]);
    let rod = folder.path("rod.npy");
    let said = succeeds(&["run", &file, "--device", "cpu", "--repeat", "2", "--get", &format!("rod={rod}")]);
    assert!(said.contains("2 launches") && said.contains("rod <f4 [32]: 100, "), "{said}");
    // 50 + 50 passes are 100 passes.
    let once = succeeds(&["run", &file, "--device", "cpu", "--set", "passes=100", "--json"]);
    let array = gridloom_file::Array::from_npy(&std::fs::read(&rod).unwrap()).unwrap();
    let first: Vec<f32> =
        array.data.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
    let report = json(&once);
    let shown: Vec<f32> = report["outputs"][0]["first"]
        .as_array()
        .unwrap()
        .iter()
        .map(|value| value.as_str().unwrap().parse().unwrap())
        .collect();
    assert_eq!(shown, first);
    // What was written can be given: 100 + 50 passes are 150 passes.
    let from_file = format!("rod={rod}");
    let outputs = |settings: &[&str]| {
        let said = succeeds(&[&["run", &file, "--device", "cpu", "--json"], settings].concat());
        json(&said)["outputs"].clone()
    };
    assert_eq!(outputs(&["--set", &from_file, "--set", "passes=50"]), outputs(&["--set", "passes=150"]));
}

#[test]
fn an_input_that_is_set_twice_is_refused() {
    let folder = Folder::new("twice");
    let file = saved(&folder, "heat", &[]);
    let output = gridloom(&["run", &file, "--device", "cpu", "--set", "passes=1", "--set", "passes=2"]);
    assert_eq!(output.status.code(), Some(1));
    let error = text(&output.stderr);
    assert!(error.contains("passes is set twice") && error.lines().count() == 1, "{error}");
}

#[test]
fn engines_give_the_same_results() {
    let folder = Folder::new("engines");
    for demo in ["life", "poisson", "bisect", "switch"] {
        let file = saved(&folder, demo, &[]);
        let outputs = |engine: &[&str]| {
            let said = succeeds(&[&["run", &file, "--device", "cpu", "--json"], engine].concat());
            json(&said)["outputs"].clone()
        };
        let compiled = outputs(&["--engine", "jit", "--unchecked"]);
        assert_eq!(outputs(&[]), compiled, "{demo}");
        assert!(!compiled.as_array().unwrap().is_empty(), "{demo}");
    }
}

#[test]
fn a_graph_that_does_not_end_is_stopped() {
    let folder = Folder::new("endless");
    let file = saved(&folder, "heat", &[]);
    let endless = [file.as_str(), "--device", "cpu", "--set", "passes=2147483647", "--timeout", "0.3"];
    for command in [&["run"][..], &["run", "--profile"], &["profile"], &["profile", "--warm-up", "0"]] {
        let output = gridloom(&[command, &endless].concat());
        assert!(!output.status.success(), "{command:?}");
        let said = text(&output.stderr);
        assert!(said.contains("not done after 300ms") && said.lines().count() == 1, "{command:?}: {said}");
    }
}

#[test]
fn a_saved_graph_is_shown_in_every_form() {
    let folder = Folder::new("show");
    let file = saved(&folder, "bisect", &[]);
    let tree = succeeds(&["show", &file]);
    for part in ["halve  [while]", "which half?  [if-else]", "then:", "raise_low"] {
        assert!(tree.contains(part), "{part} in {tree}");
    }
    assert!(succeeds(&["show", &file, "--dot"]).starts_with("digraph"));
    assert!(succeeds(&["show", &file, "--mermaid"]).contains("flowchart"));
    assert!(succeeds(&["show", &file, "--svg"]).starts_with("<svg"));
    assert!(succeeds(&["show", &file, "--html"]).contains("line "));
    assert!(json(&succeeds(&["show", &file, "--json"]))["graph"]["nodes"].is_array());
}

#[test]
fn diff_says_what_differs_and_ends_with_1() {
    let folder = Folder::new("diff");
    let (one, other) = (saved(&folder, "heat", &[]), saved(&folder, "heat", &["--size", "40"]));
    assert_eq!(succeeds(&["diff", &one, &one]), "the graphs are equal\n");
    let output = gridloom(&["diff", &one, &other]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stdout);
    assert!(said.contains("~ spread/kernel#0 heat_step: args[2]: 32 -> 40"), "{said}");
    let report = json(&text(&gridloom(&["diff", &one, &other, "--json"]).stdout));
    assert_eq!(report["equal"], false);
    assert_eq!(report["differences"][0]["kind"], "changed");
    let missing = gridloom(&["diff", &one, &folder.path("missing")]);
    assert_eq!(missing.status.code(), Some(2), "what cannot be read is told from what differs");
}

#[test]
fn a_profile_is_a_table_json_a_trace_and_a_page() {
    let folder = Folder::new("profile");
    let file = saved(&folder, "heat", &[]);
    let (page, trace) = (folder.path("heat.html"), folder.path("heat.json"));
    let said = succeeds(&["profile", &file, "--device", "cpu", "--html", &page, "--trace", &trace]);
    assert!(said.contains("critical path") && said.contains("50 passes"), "{said}");
    assert!(said.contains("--unchecked"), "the times are those of the interpreter: {said}");
    assert!(std::fs::read_to_string(&page).unwrap().contains("gridloom-profile"));
    assert!(json(&std::fs::read_to_string(&trace).unwrap())["traceEvents"].is_array());
    let profile = json(&succeeds(&["profile", "switch", "--device", "cpu", "--json"]));
    assert_eq!(profile["format"], "gridloom-profile");
    let other = folder.write("switch.json", profile.to_string().as_bytes());
    fails(&["show", &file, "--html", "--profile", &other], &["switch.json", "a profile of another graph"]);
    // The numbers of nodes are those of the picture.
    let picture = json(&succeeds(&["show", &file, "--json"]));
    let profile = json(&succeeds(&["profile", &file, "--device", "cpu", "--json"]));
    let inside = &picture["graph"]["nodes"][1]["bodies"][0]["nodes"][0];
    let row = profile["nodes"].as_array().unwrap().iter().find(|row| row["id"] == inside["id"]).unwrap();
    assert!(row["name"].as_str().unwrap().ends_with(inside["name"].as_str().unwrap()), "{row} {inside}");
    // A profile in a file goes on the page too.
    let times = folder.write("times.json", profile.to_string().as_bytes());
    assert!(succeeds(&["show", &file, "--html", "--profile", &times]).contains("launch_ns"));
    assert!(succeeds(&["run", &file, "--device", "cpu", "--profile"]).contains("heat_step"));
}

#[test]
fn demonstrations_write_pictures_and_compare_devices() {
    let folder = Folder::new("pictures");
    let (svg, png) = (folder.path("life.svg"), folder.path("life.png"));
    succeeds(&["demo", "life", "--device", "cpu", "--passes", "3", "--svg", &svg, "--png", &png]);
    assert!(std::fs::read_to_string(&svg).unwrap().starts_with("<svg"));
    assert!(std::fs::read(&png).unwrap().starts_with(b"\x89PNG"));
    let said = succeeds(&["demo", "switch", "--compare"]);
    assert!(
        said.contains("cpu, compiled") && said.contains("cpu, interpreted") && said.contains("ratio"),
        "{said}"
    );
    let report = json(&succeeds(&["demo", "bisect", "--compare", "--json"]));
    assert_eq!(report["devices"].as_array().map(Vec::len), Some(3));
    assert_eq!(json(&succeeds(&["demo", "heat", "--device", "cpu", "--json"]))["passes"], 50);
}

#[test]
fn facts_are_told_as_json_too() {
    let devices = json(&succeeds(&["devices", "--json"]));
    assert!(devices["devices"].as_array().unwrap().iter().any(|device| device["id"] == "cpu"));
    let folder = Folder::new("json");
    let ptx = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 x) { ret; }";
    let file = folder.write("k.ptx", ptx.as_bytes());
    assert_eq!(json(&succeeds(&["ptx", "check", &file, "--json"]))["kernels"][0]["name"], "k");
    let info = json(&succeeds(&["ptx", "info", &file, "--json"]));
    assert_eq!((&info["kernel"], &info["parameters"][0]["bytes"]), (&"k".into(), &8.into()));
}

#[test]
fn the_dot_that_a_program_writes_is_titled_by_its_file_and_equal_to_itself() {
    let folder = Folder::new("own-dot");
    let (one, other) = (folder.path("one.dot"), folder.path("other.dot"));
    for (passes, file) in [("20", &one), ("30", &other)] {
        succeeds(&["demo", "heat", "--device", "cpu", "--passes", passes, "--dot", file]);
    }
    assert!(succeeds(&["show", &one]).starts_with("one (6 nodes)"));
    assert_eq!(succeeds(&["diff", &one, &other]), "the graphs are equal\n");
    let text = std::fs::read_to_string(&one).expect("written");
    let shown = expect_success(&["show", "-"], &gridloom_with_input(&["show", "-"], &text));
    assert!(shown.starts_with("graph (6 nodes)"), "{shown}");
}

#[test]
fn completions_and_manual_pages_know_every_subcommand() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(succeeds(&["completions", shell]).contains("profile"), "{shell}");
    }
    assert!(succeeds(&["man"]).contains(".TH gridloom 1"));
    let folder = Folder::new("man");
    succeeds(&["man", "--output", &folder.path("pages")]);
    let page = std::fs::read_to_string(folder.path("pages/gridloom-run.1")).unwrap();
    assert!(page.contains("repeat"), "{page}");
}
