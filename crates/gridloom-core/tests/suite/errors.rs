//! The error type: what it carries and how it reads.

use std::error::Error as _;

use gridloom_core::error::DriverFailure;
use gridloom_core::{Error, ErrorKind};

fn failure() -> DriverFailure {
    DriverFailure::new("cuLaunch", "CUDA_ERROR_INVALID_VALUE", 1)
}

#[test]
fn display_says_node_message_driver_call_and_log() {
    let plain = Error::new(ErrorKind::Driver, "the launch failed");
    assert_eq!(plain.to_string(), "the launch failed");
    let full = plain.at_node("relax").with_driver(failure()).with_log("line 3: no\n\n");
    assert_eq!(
        full.to_string(),
        "relax: the launch failed (cuLaunch returned CUDA_ERROR_INVALID_VALUE 1)\nline 3: no"
    );
}

#[test]
fn every_part_can_be_read_back() {
    let source = std::io::Error::other("disk on fire");
    let error = Error::new(ErrorKind::Io, "reading failed")
        .at_node("relax")
        .with_driver(failure())
        .with_log("the log")
        .with_source(source);
    assert_eq!(error.kind(), ErrorKind::Io);
    assert_eq!(error.message(), "reading failed");
    assert_eq!(error.node(), Some("relax"));
    assert_eq!(error.driver(), Some(&failure()));
    assert_eq!(error.log(), Some("the log"));
    assert_eq!(error.source().unwrap().to_string(), "disk on fire");
    assert_eq!(error.clone().source().unwrap().to_string(), "disk on fire");
}

#[test]
fn a_plain_error_carries_nothing_else() {
    let error = Error::new(ErrorKind::NotFound, "no such kernel");
    assert!(error.node().is_none() && error.driver().is_none() && error.log().is_none());
    assert!(error.source().is_none());
}

#[test]
fn the_innermost_node_wins() {
    let error = Error::new(ErrorKind::Cycle, "m").at_node("inner").at_node("outer");
    assert_eq!(error.node(), Some("inner"));
}

#[test]
fn context_comes_before_the_message_and_outermost_first() {
    let error = Error::new(ErrorKind::InvalidArgument, "too big").context("argument 1").context("launch");
    assert_eq!(error.to_string(), "launch: argument 1: too big");
}

#[test]
fn an_empty_log_is_no_log() {
    assert_eq!(Error::new(ErrorKind::Driver, "m").with_log(" \n").log(), None);
}

#[test]
fn debug_adds_the_kind() {
    assert_eq!(format!("{:?}", Error::new(ErrorKind::Unordered, "m")), "Unordered: m");
}

#[test]
fn an_error_converts_into_a_boxed_one() {
    let boxed: Box<dyn std::error::Error + Send + Sync> = Error::new(ErrorKind::Io, "m").into();
    assert_eq!(boxed.downcast_ref::<Error>().unwrap().kind(), ErrorKind::Io);
}

#[test]
fn a_result_is_small() {
    assert_eq!(size_of::<Result<(), Error>>(), size_of::<usize>());
}
