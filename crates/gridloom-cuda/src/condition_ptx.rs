//! PTX that sets conditions, changed so that the value is stored in memory.
//!
//! A kernel sets a condition by calling `cudaGraphSetConditional(handle, value)`, an external
//! function that drivers since 12.3 provide. If the host drives the conditional, there is no such
//! handle: the call has to store the value at an address that is passed instead. So the declaration
//! of the function is replaced by a definition that stores the value, under a name that no driver
//! knows.

const FUNCTION: &str = "cudaGraphSetConditional";
const REPLACEMENT: &str = "gridloom_store_condition";

const DEFINITION: &str = "
.func gridloom_store_condition(.param .b64 gridloom_store_condition_param_0, .param .b32 gridloom_store_condition_param_1)
{
    .reg .b64 %address;
    .reg .b32 %value;
    ld.param.u64 %address, [gridloom_store_condition_param_0];
    ld.param.u32 %value, [gridloom_store_condition_param_1];
    st.volatile.u32 [%address], %value;
    membar.sys;
    ret;
}
";

/// Returns whether any code in `source` sets a condition.
pub(crate) fn sets_conditions(source: &str) -> bool {
    occurrences(source).next().is_some()
}

/// Returns `source` with every call of the function storing its value instead.
pub(crate) fn store_conditions(source: &str) -> String {
    let mut text = String::with_capacity(source.len() + DEFINITION.len());
    let mut rest = source;
    // Everything but the declaration is a rename.
    if let Some((before, after)) = split_at_declaration(source) {
        rename_into(&mut text, before);
        text.push_str(DEFINITION);
        rest = after;
    }
    rename_into(&mut text, rest);
    text
}

/// Returns the text before and after the declaration `.extern .func cudaGraphSetConditional (…);`.
fn split_at_declaration(source: &str) -> Option<(&str, &str)> {
    for at in occurrences(source) {
        let before = source[..at].trim_end();
        let Some(before) = before.strip_suffix(".func").map(str::trim_end) else { continue };
        let Some(before) = before.strip_suffix(".extern") else { continue };
        let end = at + source[at..].find(';')? + 1;
        return Some((before, &source[end..]));
    }
    None
}

fn rename_into(text: &mut String, source: &str) {
    let mut last = 0;
    for at in occurrences(source) {
        text.push_str(&source[last..at]);
        text.push_str(REPLACEMENT);
        last = at + FUNCTION.len();
    }
    text.push_str(&source[last..]);
}

/// Returns where the function's name stands as a whole word. Parameter names such as `…_param_0`
/// are other words.
fn occurrences(source: &str) -> impl Iterator<Item = usize> + '_ {
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%');
    source
        .match_indices(FUNCTION)
        .map(|(at, _)| at)
        .filter(move |&at| !source[..at].ends_with(word) && !source[at + FUNCTION.len()..].starts_with(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
.version 8.3
.target sm_70
.address_size 64
.extern .func cudaGraphSetConditional
(
	.param .b64 cudaGraphSetConditional_param_0,
	.param .b32 cudaGraphSetConditional_param_1
)
;
.visible .entry stop(.param .u64 stop_param_0)
{
	call.uni cudaGraphSetConditional, (param0, param1);
	ret;
}
";

    #[test]
    fn code_that_sets_conditions_is_recognised() {
        assert!(sets_conditions(SOURCE));
        assert!(!sets_conditions(".visible .entry stop() { ret; }"));
        assert!(!sets_conditions(".extern .func cudaGraphSetConditional_v2();"));
    }

    #[test]
    fn the_declaration_becomes_a_definition_and_calls_follow() {
        let text = store_conditions(SOURCE);
        assert!(!text.contains(".extern"), "{text}");
        assert!(!sets_conditions(&text), "{text}");
        assert_eq!(text.matches(".func gridloom_store_condition(").count(), 1, "{text}");
        assert!(text.contains("call.uni gridloom_store_condition, (param0, param1);"), "{text}");
        assert!(text.contains(".visible .entry stop("), "{text}");
    }

    #[test]
    fn the_header_stays_first() {
        assert!(store_conditions(SOURCE).starts_with(".version 8.3\n.target sm_70\n.address_size 64\n"));
    }
}
