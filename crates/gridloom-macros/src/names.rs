//! The meaning of names (types, functions, macros), as far as a name alone tells it.

use syn::Path;

/// The scalar types, whose functions are those of their twins.
pub(crate) const SCALARS: &[&str] = &[
    "bool", "u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "usize", "isize", "f16", "bf16", "f32",
    "f64",
];

/// Returns whether a name is written as types are.
pub(crate) fn is_type_name(name: &str) -> bool {
    name.chars().next().is_some_and(char::is_uppercase) && !is_constant_name(name)
}

/// Returns whether a name is written as constants are.
pub(crate) fn is_constant_name(name: &str) -> bool {
    name.len() > 1
        && name.chars().next().is_some_and(char::is_uppercase)
        && name.chars().all(|c| c.is_uppercase() || c.is_numeric() || c == '_')
}

/// Returns the last segments of a path, joined.
pub(crate) fn tail(path: &Path, count: usize) -> String {
    let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
    names[names.len().saturating_sub(count)..].join("::")
}

/// Returns what to use instead of a type of the standard library that device code has no memory
/// for.
pub(crate) fn refused_type(name: &str) -> Option<&'static str> {
    Some(match name {
        "Vec" | "VecDeque" | "BinaryHeap" => {
            "device code has no heap; use an array, or a buffer that the launch gives"
        }
        "String" | "Box" | "Rc" | "Arc" | "Cow" => "device code has no heap; use plain values",
        "HashMap" | "HashSet" | "BTreeMap" | "BTreeSet" => "device code has no heap; use arrays",
        "Mutex" | "RwLock" | "Condvar" | "RefCell" | "Cell" | "OnceLock" => {
            "device code shares memory through `Atomic` and barriers"
        }
        "Result" | "Ok" | "Err" => "device code has no `Result`; use `Option`, `assert!` or `panic!`",
        _ => return None,
    })
}

/// Methods that would name the twin instead of its value.
pub(crate) fn refused_method(name: &str) -> Option<&'static str> {
    Some(match name {
        "clone" | "to_owned" | "clone_from" => {
            "values of device code are copied: write `x`, or `*x` for what a reference leads to"
        }
        "try_into" | "try_from" => "device code has no `Result`; compare, then convert with `as`",
        "borrow" | "borrow_mut" | "as_ref" | "as_mut" => "write `&x` or `&mut x`",
        "to_string" | "to_vec" => "device code has no heap",
        "collect" | "flat_map" | "flatten" | "chain" | "peekable" | "chunks" | "partition" | "min_by"
        | "max_by" | "min_by_key" | "max_by_key" | "sort" | "sort_by" | "sort_unstable" => {
            "device code has no method of this name; write a `for` loop"
        }
        "cmp" | "partial_cmp" | "total_cmp" => {
            "device code has no `Ordering`; compare with `<`, `==` and `>`"
        }
        "await" => "device code cannot wait for futures",
        _ => return None,
    })
}

/// The operators that device code knows: the trait of Rust, that of twins, and its method.
pub(crate) const OPERATORS: &[(&str, &str, &str)] = &[
    ("Add", "OpAdd", "add"),
    ("Sub", "OpSub", "sub"),
    ("Mul", "OpMul", "mul"),
    ("Div", "OpDiv", "div"),
    ("Rem", "OpRem", "rem"),
    ("BitAnd", "OpBitAnd", "bit_and"),
    ("BitOr", "OpBitOr", "bit_or"),
    ("BitXor", "OpBitXor", "bit_xor"),
    ("Neg", "OpNeg", "neg"),
    ("Not", "OpNot", "not"),
];

/// The operators that assign, in the same form.
pub(crate) const ASSIGNING_OPERATORS: &[(&str, &str, &str)] = &[
    ("AddAssign", "OpAddAssign", "add_assign"),
    ("SubAssign", "OpSubAssign", "sub_assign"),
    ("MulAssign", "OpMulAssign", "mul_assign"),
    ("DivAssign", "OpDivAssign", "div_assign"),
    ("RemAssign", "OpRemAssign", "rem_assign"),
    ("BitAndAssign", "OpBitAndAssign", "bitand_assign"),
    ("BitOrAssign", "OpBitOrAssign", "bitor_assign"),
    ("BitXorAssign", "OpBitXorAssign", "bitxor_assign"),
];

/// Returns the trait of twins that a trait of the standard library asks for.
pub(crate) fn twin_bound(name: &str) -> Option<&'static str> {
    let mut operators = OPERATORS.iter().chain(ASSIGNING_OPERATORS);
    if let Some((_, twin, _)) = operators.find(|(of_rust, ..)| *of_rust == name) {
        return Some(twin);
    }
    match name {
        "PartialEq" | "Eq" => Some("OpEq"),
        "PartialOrd" | "Ord" => Some("OpOrd"),
        _ => None,
    }
}
