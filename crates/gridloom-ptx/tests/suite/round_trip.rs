//! Printing and parsing a random module gives the same module.

use crate::generate::Choices;
use gridloom_ptx::{check, instruction_text, parse};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_generated_module_survives_printing(numbers in prop::collection::vec(any::<u64>(), 0..600)) {
        let module = Choices::new(&numbers).module();
        let text = module.to_string();
        let again = match parse(&text) {
            Ok(again) => again,
            Err(error) => return Err(TestCaseError::fail(format!("{text}\n{error}"))),
        };
        prop_assert_eq!(again.to_string(), text.clone());
        prop_assert!(again == module, "{}\n{:#?}\n{:#?}", text, module, again);
    }

    #[test]
    fn checking_a_generated_module_ends_without_panic(numbers in prop::collection::vec(any::<u64>(), 0..300)) {
        let module = Choices::new(&numbers).module();
        let wrong = check(&module);
        // A module that was not read from text has no positions to show.
        prop_assert!(wrong.iter().all(|diagnostic| diagnostic.line == 0));
        for (_, function) in module.functions() {
            for instruction in function.body.iter().flat_map(|body| &body.instructions) {
                prop_assert!(!instruction_text(&module, function, instruction).is_empty());
            }
        }
    }
}
