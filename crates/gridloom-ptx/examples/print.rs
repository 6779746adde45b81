//! Reads a PTX file and prints it back, flattened and in canonical form.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command")]

fn main() -> std::process::ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: print FILE.ptx");
        return std::process::ExitCode::FAILURE;
    };
    let read = std::fs::read(&path).map_err(|error| error.to_string());
    match read.and_then(|bytes| gridloom_ptx::parse_bytes(&bytes).map_err(|error| error.render(&path))) {
        Ok(module) => {
            print!("{module}");
            std::process::ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            std::process::ExitCode::FAILURE
        }
    }
}
