//! Any text: the parser answers, errors can be shown, and what it takes it prints and takes again.
#![no_main]

use gridloom_ptx::{check, parse, parse_bytes};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match parse_bytes(bytes) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(module) => {
            for diagnostic in check(&module) {
                assert!(!diagnostic.to_string().is_empty());
            }
            let printed = module.to_string();
            match parse(&printed) {
                Err(error) => panic!("what was printed does not parse:\n{error}\n{printed}"),
                Ok(again) => assert!(again == module, "prints as another module:\n{printed}"),
            }
        }
    }
});
