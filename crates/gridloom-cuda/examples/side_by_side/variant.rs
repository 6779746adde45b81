//! What is launched, and how.

use crate::Error;
use crate::threads::THREADS;
use std::str::FromStr;

/// What a graph is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Two kernels.
    Plain,
    /// A kernel, eight kernels side by side after it, and one after these.
    Fan,
    /// A conditional whose body runs once.
    If,
    /// Two conditionals without anything in their bodies, which are entered.
    EmptyIf,
    /// Two loops without anything in their bodies, and without passes.
    EmptyWhile,
    /// A loop of some passes.
    While,
    /// A loop of some passes whose body is the one kernel that decides.
    TightWhile,
    /// Two kernels, compiled so that kernels could launch them.
    DeviceLaunch,
    /// A wait for an event, two kernels, and a record of another event.
    Events,
}

impl Form {
    /// Returns whether the driver treats the graph as one with a conditional.
    pub(crate) fn is_conditional(self) -> bool {
        match self {
            Form::Plain | Form::Fan | Form::Events => false,
            Form::If
            | Form::EmptyIf
            | Form::EmptyWhile
            | Form::While
            | Form::TightWhile
            | Form::DeviceLaunch => true,
        }
    }
}

/// Which launches wait for the end of the one before them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turns {
    None,
    /// Those of graphs with conditionals.
    Conditionals,
    All,
}

/// How kernels are launched.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Special {
    Cluster,
    Cooperative,
    Priority,
}

/// What changes before each launch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Arguments,
    Shape,
    Enabled,
}

/// One combination.
#[derive(Clone)]
pub(crate) struct Variant {
    pub(crate) name: String,
    /// The forms of the graphs, dealt out to the threads.
    pub(crate) forms: Vec<Form>,
    pub(crate) shares_one: bool,
    pub(crate) turns: Turns,
    pub(crate) special: Option<Special>,
    pub(crate) change: Option<Change>,
    pub(crate) recreates: bool,
    /// Whether each launch has a new executable.
    pub(crate) renews: bool,
    /// Whether an executable is replaced after a wait, when none of its launches is in flight.
    pub(crate) recreates_idle: bool,
    pub(crate) uploads: bool,
    pub(crate) uploads_again: bool,
    pub(crate) launches_kernels: bool,
    pub(crate) starts_early: bool,
    pub(crate) transfers: bool,
    pub(crate) nests: bool,
    pub(crate) forks: bool,
    /// Whether each graph ends with a call of a function of the host.
    pub(crate) calls_back: bool,
    /// Whether each launch has a stream of its own, which is destroyed while the launch is in
    /// flight.
    pub(crate) renews_streams: bool,
    /// The number of threads.
    pub(crate) threads: usize,
    /// The number of streams of a thread, each with an executable of its own, which it uses by
    /// turns.
    pub(crate) lanes: usize,
    /// Launches between two waits.
    pub(crate) batch: u32,
}

impl FromStr for Variant {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let mut variant = Variant {
            name: name.into(),
            forms: Vec::new(),
            shares_one: false,
            turns: Turns::None,
            special: None,
            change: None,
            recreates: false,
            renews: false,
            recreates_idle: false,
            uploads: false,
            uploads_again: false,
            launches_kernels: false,
            starts_early: false,
            transfers: false,
            nests: false,
            forks: false,
            calls_back: false,
            renews_streams: false,
            threads: THREADS,
            lanes: 1,
            batch: 16,
        };
        for word in name.split(',') {
            match word {
                "plain" => variant.forms.push(Form::Plain),
                "fan" => variant.forms.push(Form::Fan),
                "if" => variant.forms.push(Form::If),
                "empty-if" => variant.forms.push(Form::EmptyIf),
                "empty-while" => variant.forms.push(Form::EmptyWhile),
                "transfers" => variant.transfers = true,
                "forked" => variant.forks = true,
                "nested" => variant.nests = true,
                "early" => variant.starts_early = true,
                "while" => variant.forms.push(Form::While),
                "tight-while" => variant.forms.push(Form::TightWhile),
                "device-launch" => variant.forms.push(Form::DeviceLaunch),
                "events" => variant.forms.push(Form::Events),
                "one" => variant.shares_one = true,
                "turns" => variant.turns = Turns::All,
                "conditional-turns" => variant.turns = Turns::Conditionals,
                "cluster" => variant.special = Some(Special::Cluster),
                "cooperative" => variant.special = Some(Special::Cooperative),
                "priority" => variant.special = Some(Special::Priority),
                "arguments" => variant.change = Some(Change::Arguments),
                "shape" => variant.change = Some(Change::Shape),
                "recreate" => variant.recreates = true,
                "renew" => variant.renews = true,
                "recreate-idle" => variant.recreates_idle = true,
                "disable" => variant.change = Some(Change::Enabled),
                "upload" => variant.uploads = true,
                "upload-again" => variant.uploads_again = true,
                "callbacks" => variant.calls_back = true,
                "new-streams" => variant.renews_streams = true,
                "single" => variant.threads = 1,
                "streams" => variant.lanes = 16,
                "deep" => variant.batch = 256,
                "kernels" => variant.launches_kernels = true,
                _ => return Err(format!("no variant has the word {word:?}").into()),
            }
        }
        if variant.forms.is_empty() {
            return Err(format!("{name:?} names no form of graph, for example `while`").into());
        }
        let changes = variant.change.is_some()
            || variant.recreates
            || variant.renews
            || variant.recreates_idle
            || variant.uploads_again;
        if variant.shares_one && changes {
            return Err("an executable that threads share is neither changed nor replaced".into());
        }
        if variant.shares_one && variant.lanes > 1 {
            return Err("an executable that threads share is launched on one stream of each".into());
        }
        Ok(variant)
    }
}
