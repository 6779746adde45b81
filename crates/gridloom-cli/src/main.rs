//! The `gridloom` command: look at devices and graphs, run and profile saved graphs, run
//! demonstrations, check and run PTX.

mod args;
mod cc;
mod colour;
mod demo;
mod devices;
mod diff;
mod files;
mod image;
mod interrupt;
mod manual;
mod output;
mod pick;
mod profile;
mod progress;
mod ptx;
mod run;
mod saved;
mod show;
mod signals;
mod terminal;
mod timeout;

use std::process::ExitCode;

use clap::{ColorChoice, CommandFactory, FromArgMatches};

use crate::args::{Command, Options};
use crate::terminal::Terminal;

/// The error of a command. `main` only prints its message.
pub(crate) type Failure = Box<dyn std::error::Error>;

/// The failure of a command that has already reported its errors, file by file.
#[derive(Debug)]
pub(crate) struct Reported;

impl std::fmt::Display for Reported {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("some files failed")
    }
}

impl std::error::Error for Reported {}

fn main() -> ExitCode {
    let options = match parse() {
        Ok(options) => options,
        Err(error) => return usage(&error),
    };
    let outcome = dispatch(&options.command).and_then(|()| output::finish());
    let is_diff = matches!(options.command, Command::Diff(_));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) if failure.is::<output::Closed>() => ExitCode::SUCCESS,
        Err(failure) if failure.is::<Reported>() => ExitCode::FAILURE,
        // The status 1 says that the graphs differ.
        Err(failure) if is_diff => {
            output::complain(&describe(&*failure));
            ExitCode::from(2)
        }
        Err(failure) => {
            output::complain(&describe(&*failure));
            ExitCode::FAILURE
        }
    }
}

/// Reads the command line. Help is coloured where the terminal shows colours: clap alone would
/// colour it wherever the variable `CI` is set, on a dumb terminal too.
fn parse() -> Result<Options, clap::Error> {
    let color = if Terminal::stdout().colour { ColorChoice::Auto } else { ColorChoice::Never };
    let mut command = Options::command().color(color);
    let matches = command.try_get_matches_from_mut(std::env::args_os())?;
    Options::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

fn dispatch(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Devices(options) => devices::list(options.json),
        Command::Demo(demo) => demo::run(demo),
        Command::Show(show) => show::run(show),
        Command::Run(options) => run::run(options),
        Command::Diff(options) => diff::run(options),
        Command::Profile(options) => profile::run(options),
        Command::Ptx(command) => ptx::run(command),
        Command::Cc(options) => cc::run(options),
        Command::Completions { shell } => manual::completions(*shell),
        Command::Man { output } => manual::man(output.as_deref()),
    }
}

/// Prints help or the version as clap words them, or what is wrong with the command line, in one
/// line.
fn usage(error: &clap::Error) -> ExitCode {
    let code = ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(u8::MAX));
    // Without a subcommand, clap shows the help as an error.
    if error.use_stderr() && error.kind() != clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    {
        output::note(&in_one_line(&error.to_string()));
        return code;
    }
    match error.print().map_err(output::failed) {
        Err(failure) if !error.use_stderr() && !failure.is::<output::Closed>() => {
            output::complain(&failure.to_string());
            ExitCode::FAILURE
        }
        _ => code,
    }
}

/// Returns what clap says is wrong, without the usage below it, which `--help` shows.
fn in_one_line(message: &str) -> String {
    let lines = message.lines().map(str::trim);
    let said =
        lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"));
    let said = said.filter(|line| !line.is_empty());
    let said = said.fold(String::new(), |said, line| match line.strip_prefix("tip: ") {
        Some(tip) => format!("{said}; {tip}"),
        None if said.is_empty() => line.to_owned(),
        None => format!("{said} {line}"),
    });
    format!("{said} (see --help)")
}

/// Returns the failure to report if CUDA C++ could not be compiled. If there is no compiler, it is
/// one line, without the log, which lists every place that was searched.
pub(crate) fn compile_failure(name: &str, error: gridloom::Error) -> Failure {
    match error.kind() {
        gridloom::ErrorKind::NotSupported => format!("{name}: {}", error.message()).into(),
        _ => error.into(),
    }
}

/// Returns the message of a failure, with the log of the compiler or driver below it.
pub(crate) fn describe(failure: &(dyn std::error::Error + 'static)) -> String {
    let message = failure.to_string();
    let log = failure.downcast_ref::<gridloom::Error>().and_then(gridloom::Error::log).map(str::trim_end);
    match log {
        Some(log) if !log.is_empty() && !message.contains(log) => format!("{message}\n{log}"),
        _ => message,
    }
}
