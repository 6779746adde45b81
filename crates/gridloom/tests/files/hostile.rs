//! Files that lie. Each is an error with a reason, never a crash.
//!
//! `GRIDLOOM_HOSTILE_FILES=100000` changes a file more often, `GRIDLOOM_RANDOM_SEED=7` in another
//! way.

use gridloom::prelude::*;
use gridloom::{LoadOptions, Result};

use crate::random_graphs::variable;
use crate::support::{GraphKernels, Random, refused};

/// Returns a file with a bit of everything.
fn sample(device: &Device) -> Result<Vec<u8>> {
    let kernels = GraphKernels::new(device)?;
    let (x, left) = (kernels.buffer(&[1, 2, 3, 4])?, kernels.value(2)?);
    let graph = Graph::new(device);
    let again = graph.condition(Some(1))?;
    let alloc = graph.alloc::<i32>(4)?.named("memory")?;
    let upload = alloc.memcpy(&alloc, &[1, 2, 3, 4])?;
    let event = device.event()?;
    let repeat = upload.record(&event)?.wait(&event)?.while_loop(&again)?.named("loop")?;
    repeat.body().launch(&kernels.countdown, LaunchConfig::one(), (&again, &left))?;
    let mix = repeat.launch(&kernels.mix, LaunchConfig::linear(4), (&x, &alloc, 4))?.named("mix")?;
    mix.switch_on(&left, 2)?.body(1)?.memset(&x, 0u16)?;
    graph.free(&alloc)?.after([&mix])?;
    graph.saver().input("x", &x)?.output("x", &x)?.input("left", &left)?.to_bytes()
}

fn checked() -> Device {
    let options = CpuOptions::new().checked(true).threads(1).memory_limit(64 << 20).step_limit(100_000);
    Device::cpu_with(options).unwrap()
}

/// Changes the text of `graph.json` and loads the result.
#[track_caller]
fn changed(from: &str, to: &str) -> Result<gridloom::LoadedGraph> {
    let device = checked();
    let bytes = sample(&device).unwrap();
    let file = gridloom_file::GraphFile::from_bytes(&bytes, &gridloom_file::Limits::default()).unwrap();
    let text = serde_json::to_string(&file.document).unwrap();
    assert!(text.contains(from), "no {from} in {text}");
    let mut changed = file.clone();
    match serde_json::from_str(&text.replacen(from, to, 1)) {
        Ok(document) => changed.document = document,
        Err(error) => return Err(Error::new(ErrorKind::InvalidFile, error.to_string())),
    }
    let bytes = changed.to_bytes().map_err(|error| Error::new(ErrorKind::InvalidFile, error.to_string()))?;
    LoadOptions::new().load_bytes_checked(&bytes, &device)
}

#[test]
fn a_changed_document_is_refused_with_the_place_and_the_reason() {
    assert!(changed("\"mix\"", "\"mix\"").is_ok());
    let cases: &[(&str, &str, ErrorKind, &[&str])] = &[
        ("\"kernel\":0", "\"kernel\":9", ErrorKind::InvalidFile, &["no kernel 9"]),
        ("\"module\":0", "\"module\":7", ErrorKind::InvalidFile, &["no module 7"]),
        ("\"buffer\":0", "\"buffer\":70", ErrorKind::InvalidFile, &["no buffer 70"]),
        ("\"alloc\":[0,0]", "\"alloc\":[0,1]", ErrorKind::InvalidFile, &["allocates no memory"]),
        ("\"after\":[0]", "\"after\":[99]", ErrorKind::InvalidFile, &["node 99"]),
        ("\"body\":1", "\"body\":0", ErrorKind::InvalidFile, &["graph 0"]),
        ("\"condition\":0", "\"condition\":3", ErrorKind::InvalidFile, &["no condition 3"]),
        ("\"name\":\"mix\"", "\"name\":\"nix\"", ErrorKind::NotFound, &["nix"]),
        ("\"grid\":[1,1,1]", "\"grid\":[0,1,1]", ErrorKind::InvalidArgument, &["grid"]),
        ("{\"integer\":4}", "{\"integer\":5}", ErrorKind::ContractViolation, &["mix", "needs 5"]),
        ("{\"integer\":4}", "{\"integer\":-1}", ErrorKind::InvalidFile, &["mix", "argument 2"]),
        ("\"length\":\"u32\"", "\"length\":\"f32\"", ErrorKind::InvalidFile, &["f32"]),
        ("\"length\":\"u32\"", "\"length\":\"u64\"", ErrorKind::InvalidFile, &["parameter"]),
        (
            "\"offset\":0,\"bytes\":16",
            "\"offset\":8,\"bytes\":16",
            ErrorKind::InvalidArgument,
            &["past the end"],
        ),
        (
            "\"offset\":0,\"bytes\":16",
            "\"offset\":18446744073709551615,\"bytes\":16",
            ErrorKind::InvalidFile,
            &["not inside"],
        ),
        ("\"shape\":[4]", "\"shape\":[4294967296,4294967296]", ErrorKind::InvalidFile, &["x"]),
        ("\"device\":16", "\"device\":0", ErrorKind::InvalidFile, &["no bytes"]),
        ("\"device\":16", "\"device\":18446744073709551615", ErrorKind::InvalidFile, &["limit"]),
        ("\"operation\":{", "\"surprise\":1,\"operation\":{", ErrorKind::InvalidFile, &["surprise"]),
        ("\"version\":1", "\"version\":2", ErrorKind::InvalidFile, &["version 2"]),
        ("\"element_size\":4", "\"element_size\":0", ErrorKind::InvalidArgument, &["memory"]),
    ];
    for (from, to, kind, says) in cases {
        let error = refused(changed(from, to), *kind, says);
        assert!(!error.to_string().contains('\n'), "one line: {error}");
    }
}

/// Changes the text of `graph.json` as text, so that it need not be a document, and loads the
/// result.
fn changed_text(from: &str, to: &str) -> Result<gridloom::LoadedGraph> {
    let device = checked();
    let bytes = sample(&device).unwrap();
    let file = gridloom_file::GraphFile::from_bytes(&bytes, &gridloom_file::Limits::default()).unwrap();
    let text = serde_json::to_string(&file.document).unwrap();
    assert!(text.contains(from), "no {from} in {text}");
    let text = text.replacen(from, to, 1);
    let arrays: Vec<Vec<u8>> = file.inputs.iter().map(|array| array.to_npy()).collect();
    let bytes_of = gridloom_file::Array::new(
        gridloom_file::DType::parse("|u1").unwrap(),
        vec![file.constants[0].len() as u64],
        file.constants[0].clone(),
    );
    let constant = bytes_of.unwrap().to_npy();
    let entries = [
        ("graph.json", text.as_bytes()),
        ("modules/0.ptx", file.modules[0].as_bytes()),
        ("constants/0.npy", &constant[..]),
        ("inputs/x.npy", &arrays[0]),
        ("inputs/left.npy", &arrays[1]),
    ];
    LoadOptions::new().load_bytes_checked(&super::archive(&entries), &device)
}

#[test]
fn text_that_is_no_document_is_refused_with_the_reason() {
    assert!(changed_text("\"mix\"", "\"mix\"").is_ok());
    let cases = [
        ("\"version\":1", "\"version\":1,\"version\":1", "duplicate"),
        ("\"kernels\":", "\"kernels\":[],\"kernels\":", "duplicate"),
        ("\"operation\":{", "\"operation\":{\"child\":1,", "graph.json"),
        ("\"grid\":[1,1,1]", "\"grid\":[1,1,1,1]", "graph.json"),
        ("\"grid\":[1,1,1]", "\"grid\":[4294967296,1,1]", "graph.json"),
        ("\"grid\":[1,1,1]", "\"grid\":[NaN,1,1]", "graph.json"),
        ("\"grid\":[1,1,1]", "\"grid\":[1e999,1,1]", "graph.json"),
        ("\"grid\":[1,1,1]", "\"grid\":[-1,1,1]", "graph.json"),
        ("{\"integer\":4}", "{\"integer\":9223372036854775808}", "graph.json"),
        ("{\"integer\":4}", "{\"f32\":\"nothing\"}", "not a number"),
        ("{\"integer\":4}", "{\"bytes\":\"0\"}", "hexadecimal"),
        ("\"format\":\"gridloom-saved-graph\"", "\"format\":\"other\"", "format"),
    ];
    for (from, to, said) in cases {
        let error = refused(changed_text(from, to), ErrorKind::InvalidFile, &[said]);
        assert!(!error.to_string().contains('\n'), "one line: {error}");
    }
    let deep = |brackets: &str| brackets.repeat(100_000);
    let nested = format!("\"after\":[{}{}", deep("["), deep("]"));
    refused(changed_text("\"after\":[", &nested), ErrorKind::InvalidFile, &["graph.json"]);
    let nested = format!("\"signature\":{{\"holds\":[[0,{}", deep("{\"sum\":["));
    refused(changed_text("\"signature\":{", &nested), ErrorKind::InvalidFile, &["graph.json"]);
}

#[test]
fn floats_that_are_no_numbers_and_names_of_any_characters_are_kept() {
    for value in ["NaN", "inf", "-inf", "-0"] {
        let (from, to) = ("{\"integer\":4}", format!("{{\"f32\":\"{value}\"}}"));
        // Four bytes fit the parameter, and its contract says that they are a length.
        refused(changed_text(from, &to), ErrorKind::ContractViolation, &["mix"]);
    }
    let loaded = changed_text("\"name\":\"memory\"", "\"name\":\"\\u001b[31m\\u0000\\n\"").unwrap();
    assert!(loaded.graph().nodes().iter().any(|node| node.label() == "\u{1b}[31m\0\n"));
}

#[test]
fn what_an_archive_holds_besides_does_not_matter() {
    let device = checked();
    let document = gridloom_file::document::Document {
        graphs: vec![gridloom_file::document::Graph::default()],
        ..Default::default()
    };
    let text = serde_json::to_string(&document).unwrap();
    let load =
        |entries: &[(&str, &[u8])]| LoadOptions::new().load_bytes_checked(&super::archive(entries), &device);
    let graph = ("graph.json", text.as_bytes());
    assert!(load(&[graph, ("../../tmp/evil", b"x"), ("README", b"y"), ("modules/0.ptx", b"\xff")]).is_ok());
    refused(load(&[graph, graph]), ErrorKind::InvalidFile, &["two entries", "graph.json"]);
    refused(load(&[("Graph.json", text.as_bytes())]), ErrorKind::InvalidFile, &["graph.json"]);
    refused(load(&[("graph.json", b"")]), ErrorKind::InvalidFile, &["graph.json"]);
    refused(load(&[("graph.json", b"\xff\xfe")]), ErrorKind::InvalidFile, &["graph.json"]);
}

#[test]
fn cut_and_changed_files_never_crash() {
    let device = checked();
    let bytes = sample(&device).unwrap();
    let load = |bytes: &[u8]| LoadOptions::new().load_bytes_checked(bytes, &device);
    for end in (0..bytes.len()).step_by(97) {
        refused(load(&bytes[..end]), ErrorKind::InvalidFile, &[]);
    }
    // A changed document with right checksums, so that it gets further.
    let file = gridloom_file::GraphFile::from_bytes(&bytes, &gridloom_file::Limits::default()).unwrap();
    let text = serde_json::to_string(&file.document).unwrap();
    let mut random = Random::new(variable("GRIDLOOM_RANDOM_SEED").unwrap_or(7));
    let mut accepted = 0;
    for _ in 0..variable("GRIDLOOM_HOSTILE_FILES").unwrap_or(2000) {
        let mut bytes = text.clone().into_bytes();
        for _ in 0..1 + random.below(3) {
            // Mostly numbers, since few other changes leave a document.
            let digits: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at].is_ascii_digit()).collect();
            let any = random.below(bytes.len());
            let at = if random.one_in(4) { any } else { digits[random.below(digits.len())] };
            match random.below(3) {
                0 => bytes[at] = b'0' + random.below(10) as u8,
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, b'0' + random.below(10) as u8),
            }
        }
        let Ok(document) = serde_json::from_slice(&bytes) else { continue };
        let changed = gridloom_file::GraphFile { document, ..file.clone() };
        let Ok(bytes) = changed.to_bytes() else { continue };
        if let Ok(loaded) = load(&bytes) {
            accepted += 1;
            // What is accepted can be launched: it ends, or fails in an orderly way.
            if let Ok(executable) = loaded.graph().instantiate() {
                let stream = device.stream().unwrap();
                if executable.launch(&stream).is_ok() {
                    let ended = stream.synchronize_timeout(std::time::Duration::from_millis(200));
                    if ended.is_err() {
                        executable.cancel();
                        drop(stream.synchronize());
                    }
                }
            }
        }
    }
    assert!(accepted > 20, "only {accepted} changes got past the reader");
}

#[test]
fn deep_nesting_is_refused_or_built() {
    use gridloom_file::document::{Document, Graph, Node, Operation};
    let device = checked();
    for depth in [10, 63, 64, 65, 200, 5000] {
        let node = |operation| Node { name: None, after: vec![], programmatic: vec![], operation };
        let mut graphs: Vec<Graph> =
            (1..=depth).map(|body| Graph { nodes: vec![node(Operation::Child(body))] }).collect();
        graphs.push(Graph::default());
        let file = gridloom_file::GraphFile {
            document: Document { graphs, ..Document::default() },
            ..gridloom_file::GraphFile::default()
        };
        match file.to_bytes() {
            Ok(bytes) => {
                let loaded = LoadOptions::new().load_bytes_checked(&bytes, &device);
                assert!(loaded.is_ok() || depth > 60, "{loaded:?}");
            }
            Err(error) => assert!(depth > 64 && error.to_string().contains("nested"), "{error}"),
        }
    }
}
