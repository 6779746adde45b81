//! Parses the files named on the command line and says what is wrong with each.
#![allow(clippy::print_stdout, reason = "a command")]

use gridloom_ptx::op::Op;

fn main() {
    let mut bad = 0;
    for path in std::env::args().skip(1) {
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) => {
                println!("{path}: {error}");
                continue;
            }
        };
        match gridloom_ptx::parse_bytes(&bytes) {
            Err(error) => {
                bad += 1;
                println!("{}", error.render(&path));
            }
            Ok(module) => {
                match gridloom_ptx::parse(&module.to_string()) {
                    Err(error) => {
                        bad += 1;
                        println!("{}", error.render(&format!("{path} printed")));
                    }
                    Ok(again) if again != module => {
                        bad += 1;
                        println!("{path}: prints as another module");
                    }
                    Ok(_) => {}
                }
                let wrong = gridloom_ptx::check(&module);
                bad += usize::from(!wrong.is_empty());
                for diagnostic in wrong {
                    println!("{}", diagnostic.render(&path));
                }
                for (_, function) in module.functions() {
                    for instruction in function.body.iter().flat_map(|body| &body.instructions) {
                        if let Op::Unsupported(unsupported) = &instruction.op {
                            let (line, _) = module.source.position(instruction.span);
                            println!("{path}:{line}: {} ({})", unsupported.full_name(), unsupported.reason);
                        }
                    }
                }
            }
        }
    }
    println!("{bad} files with errors");
}
