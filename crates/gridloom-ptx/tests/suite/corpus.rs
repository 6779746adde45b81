//! Every file of the corpus, as compilers wrote it: it parses, passes the checker, and survives
//! printing.

use std::path::{Path, PathBuf};

use gridloom_ptx::op::Op;
use gridloom_ptx::{check, parse};

/// Every `.ptx` file under `folder`, in a stable order.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "ptx") {
            found.push(path);
        }
    }
}

fn corpus() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus"), &mut found);
    assert!(found.len() > 50, "the corpus has {} files; some are missing", found.len());
    found
        .into_iter()
        .map(|path| {
            let text = std::fs::read_to_string(&path).expect("a file of the corpus");
            (path, text)
        })
        .collect()
}

#[test]
fn every_file_reads_checks_and_survives_printing() {
    for (path, text) in corpus() {
        let name = path.display().to_string();
        let module = parse(&text).unwrap_or_else(|error| panic!("{}", error.render(&name)));
        let wrong: Vec<String> = check(&module).iter().map(|diagnostic| diagnostic.render(&name)).collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        let printed = module.to_string();
        let again = parse(&printed).unwrap_or_else(|error| panic!("{name}, printed: {error}"));
        assert!(again == module, "{name} prints as another module:\n{printed}");
        assert!(check(&again).is_empty(), "{name}: printing brought errors");
    }
}

#[test]
fn only_matrix_instructions_are_outside_the_model() {
    let outside = ["mma", "wgmma", "ldmatrix", "stmatrix", "tcgen05"];
    for (path, text) in corpus() {
        let module =
            parse(&text).unwrap_or_else(|error| panic!("{}", error.render(&path.display().to_string())));
        for (_, function) in module.functions() {
            for instruction in function.body.iter().flat_map(|body| &body.instructions) {
                if let Op::Unsupported(unsupported) = &instruction.op {
                    let known = outside.contains(&unsupported.mnemonic.as_str());
                    assert!(known, "{}: {}", path.display(), unsupported.full_name());
                }
            }
        }
    }
}

#[test]
fn every_instruction_knows_its_text() {
    for (path, text) in corpus() {
        let module =
            parse(&text).unwrap_or_else(|error| panic!("{}", error.render(&path.display().to_string())));
        for (_, function) in module.functions() {
            for instruction in function.body.iter().flat_map(|body| &body.instructions) {
                let written = module.source.slice(instruction.span);
                assert!(written.ends_with(';'), "{}: {written}", path.display());
                assert_eq!(
                    written.starts_with('@'),
                    instruction.guard.is_some(),
                    "{}: {written}",
                    path.display()
                );
            }
        }
    }
}
