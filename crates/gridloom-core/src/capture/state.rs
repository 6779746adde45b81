//! The states of a capture and the transitions between them.

use crate::error::{Error, ErrorKind, Result};

/// The origin of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CaptureKind {
    /// Created by `capture` on a stream.
    Primary,
    /// Split off from another capture, by `fork` or through an event.
    Forked,
    /// The capture of the body of a conditional.
    Body,
}

/// The state of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CaptureState {
    /// A body before `begin`.
    NotStarted,
    /// Recording.
    Capturing,
    /// A fork that was joined into another capture.
    Joined,
    /// Complete. The graph is an ordinary graph.
    Ended,
    /// Discarded, or closed after use.
    Closed,
}

/// An action that a caller requests of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    Begin,
    /// Any operation that records a node, and `fork` and `join` on the capture that continues.
    Record,
    /// Being joined into another capture.
    BeJoined,
    End,
    Graph,
}

/// An event that a capture cannot refuse in any state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ending {
    /// The capture that this fork or body belongs to ends.
    Finish,
    /// The capture is closed, or dropped while it records.
    Close,
}

/// Returns the state after an event that cannot be refused.
pub(crate) fn end_by(state: CaptureState, ending: Ending) -> CaptureState {
    use CaptureState::*;
    match (ending, state) {
        (Ending::Close, _) => Closed,
        (Ending::Finish, NotStarted | Capturing | Ended) => Ended,
        (Ending::Finish, Joined | Closed) => state,
    }
}

/// Returns the state after an action, or an error if the state forbids it.
pub(crate) fn step(kind: CaptureKind, state: CaptureState, action: Action) -> Result<CaptureState> {
    use CaptureKind::*;
    use CaptureState::*;
    let refuse = |message: &str| Err(Error::new(ErrorKind::InvalidState, message));
    match (action, kind, state) {
        (_, _, Closed) => refuse("the capture was closed; start another one"),

        (Action::End, Forked, _) => refuse(
            "a forked capture is not ended: join it into the capture it was forked from, and end that one",
        ),
        (Action::Graph, Forked, _) => {
            refuse("a forked capture has no graph of its own; ask the capture it was forked from")
        }
        (Action::BeJoined, Primary | Body, _) => refuse(
            "only a forked capture is joined into another; call join on this one and give it the forks",
        ),

        (Action::Begin, _, NotStarted) => Ok(Capturing),
        (Action::Begin, _, Capturing) => refuse("the capture has begun already"),
        (Action::Begin, _, Joined) => refuse("the capture was joined into another and cannot begin again"),
        (Action::Begin, _, Ended) => {
            refuse("the capture has ended and cannot begin again; edit its graph instead")
        }

        (Action::Graph, _, NotStarted | Ended) => Ok(state),
        (Action::Graph, _, Capturing) => {
            refuse("the graph is incomplete while the capture goes on; end it first")
        }
        (Action::Graph, _, Joined) => refuse("the capture was joined into another, which has the graph"),

        (Action::End, _, Capturing) => Ok(Ended),
        (Action::BeJoined, _, Capturing) => Ok(Joined),
        (Action::Record, _, Capturing) => Ok(Capturing),
        (Action::Record | Action::BeJoined | Action::End, _, NotStarted) => {
            refuse("the capture has not begun; call begin first")
        }
        (Action::Record | Action::BeJoined | Action::End, _, Joined) => {
            refuse("the capture was joined into another; use that one")
        }
        (Action::Record | Action::BeJoined | Action::End, _, Ended) => {
            refuse("the capture has ended; edit its graph, or start another capture")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use CaptureKind::*;
    use CaptureState::*;

    const KINDS: [CaptureKind; 3] = [Primary, Forked, Body];
    const STATES: [CaptureState; 5] = [NotStarted, Capturing, Joined, Ended, Closed];

    #[test]
    fn recording_needs_a_capture_that_goes_on() {
        for kind in KINDS {
            for state in STATES {
                assert_eq!(
                    step(kind, state, Action::Record).is_ok(),
                    state == Capturing,
                    "{kind:?} {state:?}"
                );
            }
        }
    }

    #[test]
    fn every_allowed_transition_is_in_this_table_and_no_other() {
        let allowed = [
            (Action::Begin, Body, NotStarted, Capturing),
            (Action::Begin, Primary, NotStarted, Capturing),
            (Action::Begin, Forked, NotStarted, Capturing),
            (Action::BeJoined, Forked, Capturing, Joined),
            (Action::End, Primary, Capturing, Ended),
            (Action::End, Body, Capturing, Ended),
            (Action::Graph, Primary, NotStarted, NotStarted),
            (Action::Graph, Body, NotStarted, NotStarted),
            (Action::Graph, Primary, Ended, Ended),
            (Action::Graph, Body, Ended, Ended),
        ];
        for action in [Action::Begin, Action::BeJoined, Action::End, Action::Graph] {
            for kind in KINDS {
                for state in STATES {
                    let expected = allowed
                        .iter()
                        .find(|(a, k, s, _)| (*a, *k, *s) == (action, kind, state))
                        .map(|(.., next)| *next);
                    assert_eq!(step(kind, state, action).ok(), expected, "{action:?} {kind:?} {state:?}");
                }
            }
        }
    }

    #[test]
    fn each_wrong_use_has_an_error_of_its_own() {
        let messages = [
            step(Primary, Capturing, Action::Begin),
            step(Primary, Ended, Action::Begin),
            step(Body, NotStarted, Action::Record),
            step(Forked, Joined, Action::Record),
            step(Primary, Ended, Action::Record),
            step(Primary, Closed, Action::Record),
            step(Forked, Capturing, Action::End),
            step(Forked, Capturing, Action::Graph),
            step(Primary, Capturing, Action::Graph),
            step(Primary, Capturing, Action::BeJoined),
        ]
        .map(|result| result.unwrap_err().to_string());
        let distinct: std::collections::HashSet<&String> = messages.iter().collect();
        assert_eq!(distinct.len(), messages.len());
    }

    #[test]
    fn what_is_still_open_ends_with_the_capture_it_belongs_to() {
        for (state, after) in
            [(NotStarted, Ended), (Capturing, Ended), (Joined, Joined), (Ended, Ended), (Closed, Closed)]
        {
            assert_eq!(end_by(state, Ending::Finish), after, "{state:?}");
        }
    }

    #[test]
    fn anything_can_be_closed() {
        for state in STATES {
            assert_eq!(end_by(state, Ending::Close), Closed);
        }
    }
}
