use std::sync::Arc;

use super::*;
use crate::backend::Kernel;
use crate::error::{Error, ErrorKind};
use crate::launch::LaunchConfig;
use crate::memory::{MemoryKind, Region};
use crate::null::{FakeKernel, NullDevice};
use crate::op::{ArgValue, KernelArgs};

const U32: Integer = Integer { bytes: 4, signed: false };

fn pointer(element_size: u32) -> ParamType {
    ParamType::of::<u64>(ParamKind::Pointer { element_size, nullable: false, written: false })
}

fn nullable(element_size: u32) -> ParamType {
    ParamType::of::<u64>(ParamKind::Pointer { element_size, nullable: true, written: false })
}

fn length(integer: Integer) -> ParamType {
    ParamType::of::<u32>(ParamKind::Length(integer))
}

/// Memory of so many bytes.
fn memory(bytes: u64) -> ArgValue {
    let allocation = NullDevice::new().allocate(bytes.max(1), MemoryKind::Device).expect("any size");
    let region = Region { bytes, ..Region::whole(allocation) };
    ArgValue::Pointer(PointerValue::Region(region))
}

fn number(value: u32) -> ArgValue {
    ArgValue::plain(&value.to_ne_bytes())
}

fn null() -> ArgValue {
    ArgValue::plain(&[0; 8])
}

/// Checks a launch of one block of 64 threads with these arguments.
fn check(
    params: impl IntoIterator<Item = ParamType>,
    contract: Contract,
    args: impl IntoIterator<Item = ArgValue>,
) -> Result<(), Error> {
    let signature = Signature::new(params, contract)?;
    let kernel: Arc<dyn Kernel> = FakeKernel::new("kernel").on(&NullDevice::new());
    let args = KernelArgs::pack("kernel", None, args)?;
    // SAFETY: it is never launched.
    let launch = unsafe { KernelOp::new(kernel.clone(), LaunchConfig::new(1, 64), args) };
    signature.check(&*kernel, &launch)
}

#[track_caller]
fn broken(result: Result<(), Error>, says: &[&str]) {
    let error = result.expect_err("the contract is broken");
    assert_eq!(error.kind(), ErrorKind::ContractViolation, "{error}");
    let text = error.to_string();
    for word in says {
        assert!(text.contains(word), "expected {word:?} in: {text}");
    }
}

#[test]
fn a_length_is_at_most_that_of_every_pointer() {
    let params = [pointer(4), length(U32), pointer(8)];
    let check = |one, n, other| check(params, Contract::new(), [memory(one), number(n), memory(other)]);
    assert!(check(40, 10, 80).is_ok());
    assert!(check(40, 0, 80).is_ok());
    broken(check(39, 10, 80), &["argument 0", "has 9 elements", "needs 10", "argument 1"]);
    broken(check(40, 10, 79), &["argument 2", "has 9 elements", "needs 10"]);
    broken(check(40, u32::MAX, 80), &["argument 0", "4294967295"]);
}

#[test]
fn the_longest_of_several_lengths_counts() {
    let params = [length(U32), pointer(4), length(U32)];
    let check = |n, m| check(params, Contract::new(), [number(n), memory(40), number(m)]);
    assert!(check(10, 3).is_ok());
    broken(check(3, 11), &["argument 1", "argument 2, a length, is 11"]);
    broken(check(11, 3), &["argument 1", "argument 0, a length, is 11"]);
}

#[test]
fn a_pointer_leads_to_at_least_one_element() {
    assert!(check([pointer(4)], Contract::new(), [memory(4)]).is_ok());
    broken(check([pointer(4)], Contract::new(), [memory(0)]), &["has 0 elements", "needs 1"]);
    broken(check([pointer(4)], Contract::new(), [memory(3)]), &["has 0 elements"]);
    broken(check([pointer(4), length(U32)], Contract::new(), [memory(0), number(0)]), &["needs 1"]);
    assert!(check([pointer(4)], Contract::new().holds(0, 0), [memory(0)]).is_ok());
}

#[test]
fn null_is_refused_unless_the_parameter_is_nullable() {
    broken(check([pointer(4)], Contract::new(), [null()]), &["argument 0", "null"]);
    assert!(check([nullable(4)], Contract::new(), [null()]).is_ok());
    assert!(check([nullable(4)], Contract::new().holds(0, 10), [null()]).is_ok());
    broken(check([nullable(4)], Contract::new().holds(0, 10), [memory(36)]), &["has 9", "needs 10"]);
    assert!(check([nullable(4), length(U32)], Contract::new(), [null(), number(7)]).is_ok());
}

#[test]
fn an_address_that_is_a_plain_value_is_refused() {
    let address = ArgValue::plain(&0x1000u64.to_ne_bytes());
    broken(check([nullable(4)], Contract::new(), [address]), &["argument 0", "plain address"]);
}

#[test]
fn a_contract_decides_for_the_pointers_that_it_names_alone() {
    let params = [pointer(8), pointer(8), length(U32)];
    let contract = || Contract::new().holds(0, 1);
    assert!(check(params, contract(), [memory(8), memory(80), number(10)]).is_ok());
    broken(check(params, contract(), [memory(7), memory(80), number(10)]), &["argument 0", "needs 1"]);
    broken(check(params, contract(), [memory(8), memory(72), number(10)]), &["argument 1", "needs 10"]);
}

#[test]
fn expressions_compute_with_arguments_lengths_and_the_shape() {
    let params = [pointer(4), ParamType::value::<u32>(), ParamType::value::<i64>()];
    let given =
        |bytes, rows: u32, pitch: i64| [memory(bytes), number(rows), ArgValue::plain(&pitch.to_ne_bytes())];
    let rows = || Contract::new().holds(0, (arg(1) - 1) * arg(2) + 3);
    assert!(check(params, rows(), given(4 * 23, 3, 10)).is_ok());
    broken(check(params, rows(), given(4 * 22, 3, 10)), &["has 22", "needs 23", "argument 1 - 1"]);
    assert!(check(params, rows(), given(4 * 22, 3, -10)).is_ok());
    broken(check(params, rows(), given(4, u32::MAX, i64::MAX)), &["overflows"]);
    let blocks = || Contract::new().holds(0, grid(Axis::X) * block(Axis::X).max(arg(1)));
    assert!(check(params, blocks(), given(4 * 64, 10, 0)).is_ok());
    broken(check(params, blocks(), given(4 * 64, 65, 0)), &["needs 65"]);
    let bounded = || Contract::new().at_most(arg(1), len(0)).at_least(arg(2), 0);
    assert!(check(params, bounded(), given(40, 10, 0)).is_ok());
    broken(
        check(params, bounded(), given(40, 11, 0)),
        &["argument 1 (11) must be at most length of argument 0 (10)"],
    );
    broken(check(params, bounded(), given(40, 10, -1)), &["0 must be at most argument 2 (-1)"]);
}

#[test]
fn memory_is_asked_to_be_apart() {
    let params = [pointer(4), pointer(8)];
    let apart = || Contract::new().disjoint(0, 1);
    let same = memory(40);
    broken(check(params, apart(), [same.clone(), same.clone()]), &["argument 0 and argument 1", "overlaps"]);
    let ArgValue::Pointer(PointerValue::Region(region)) = same else { panic!("it is memory") };
    let part =
        |offset, bytes| ArgValue::Pointer(PointerValue::Region(region.part(offset, bytes).expect("a part")));
    assert!(check(params, apart(), [part(0, 16), part(16, 24)]).is_ok());
    broken(check(params, apart(), [part(0, 20), part(16, 24)]), &["overlaps"]);
    broken(check(params, apart(), [part(16, 24), part(0, 20)]), &["overlaps"]);
    let nothing = apart().holds(0, 0);
    assert!(check(params, nothing, [part(20, 0), part(16, 24)]).is_ok());
    assert_eq!(apart().to_string(), "argument 0 and argument 1 are apart");
    let error = Signature::new([pointer(4), length(U32)], apart()).expect_err("a length is no memory");
    assert!(error.to_string().contains("argument 1 is apart from"), "{error}");
}

#[test]
fn a_number_is_asked_to_be_a_multiple_of_another() {
    let params = [ParamType::value::<u32>(), ParamType::value::<u32>()];
    let check =
        |n, width| check(params, Contract::new().multiple_of(arg(0), arg(1)), [number(n), number(width)]);
    assert!(check(12, 4).is_ok());
    assert!(check(0, 4).is_ok());
    broken(check(13, 4), &["argument 0 (13)", "a multiple of argument 1 (4)"]);
    broken(check(12, 0), &["a multiple of argument 1 (0)"]);
}

#[test]
fn lengths_that_are_negative_or_past_63_bits_break_every_contract() {
    let signed = Integer { bytes: 4, signed: true };
    let long = Integer { bytes: 8, signed: false };
    broken(check([pointer(4), length(signed)], Contract::new(), [memory(4), number(u32::MAX)]), &["-1"]);
    let most = ArgValue::plain(&u64::MAX.to_ne_bytes());
    broken(check([pointer(4), length(long)], Contract::new(), [memory(4), most]), &["argument 1"]);
    let half = ArgValue::plain(&(1u64 << 62).to_ne_bytes());
    broken(
        check([pointer(4), length(long)], Contract::new(), [memory(4), half]),
        &["needs 4611686018427387904"],
    );
}

#[test]
fn contracts_name_pointers_that_hold_and_integers_that_count() {
    let refused = |contract: Contract| {
        let params = [pointer(4), ParamType::value::<f32>(), ParamType::value::<u32>()];
        Signature::new(params, contract).expect_err("it names what is not there").to_string()
    };
    assert!(refused(Contract::new().holds(2, 1)).contains("argument 2"));
    assert!(refused(Contract::new().holds(3, 1)).contains("3 parameters"));
    assert!(refused(Contract::new().holds(0, arg(1))).contains("argument 1"));
    assert!(refused(Contract::new().holds(0, arg(0))).contains("argument 0"));
    assert!(refused(Contract::new().at_most(arg(2) * len(2), 1)).contains("length of argument 2"));
}

#[test]
fn an_integer_is_written_as_it_is_read_and_where_it_fits() {
    for bytes in [1, 2, 4, 8] {
        for signed in [false, true] {
            let integer = Integer { bytes, signed };
            let bits = 8 * u32::from(bytes) - u32::from(signed);
            let most = if bits >= 63 { i64::MAX } else { (1 << bits) - 1 };
            let least = if signed { -most - 1 } else { 0 };
            for value in [0, 1, most, least] {
                assert_eq!(integer.write(value).and_then(|bytes| integer.read(&bytes)), Some(value));
            }
            for value in [most.checked_add(1), least.checked_sub(1)].into_iter().flatten() {
                assert_eq!(integer.write(value), None, "{integer:?} {value}");
            }
        }
    }
}

#[test]
fn a_kernel_with_a_signature_answers_for_the_one_it_runs() {
    let plain: Arc<dyn Kernel> = FakeKernel::new("kernel").on(&NullDevice::new());
    let signature = || Signature::new([pointer(4)], Contract::new().holds(0, 2)).expect("valid");
    let signed = signature().of_kernel(&plain);
    assert_eq!((signed.name(), signed.device()), (plain.name(), plain.device()));
    assert!(signed.as_any().is::<FakeKernel>() || plain.as_any().type_id() == signed.as_any().type_id());
    assert!(signed.properties().contains(&("contract".into(), "argument 0 holds 2".into())));
    assert!(Arc::ptr_eq(&without_signature(&signature().of_kernel(&signed)), &plain));
}

#[test]
fn a_contract_depends_on_memory_lengths_and_the_numbers_it_computes_with() {
    let value = || ParamType::value::<u32>();
    let params = || [pointer(4), length(U32), value(), value(), value()];
    let contract = Contract::new().holds(0, arg(2) * 3).at_most(arg(3), 5);
    let signature = Signature::new(params(), contract).expect("it fits");
    assert_eq!(
        [0, 1, 2, 3, 4, 5].map(|index| signature.depends_on(index)),
        [true, true, true, true, false, true]
    );
    assert!(!signature.depends_on_places());
    let apart = Signature::new([pointer(4), pointer(4)], Contract::new().disjoint(0, 1)).expect("it fits");
    assert!(apart.depends_on_places());
}

#[test]
fn numbers_nested_too_deep_are_refused_and_overflow_no_stack() {
    let nested = |terms: usize| (0..terms).fold(arg(0), |sum, _| sum + 1);
    let contract = |terms| Contract::new().at_most(nested(terms), 100_000);
    let params = || [ParamType::value::<u32>()];
    assert!(Signature::new(params(), contract(200)).is_ok());
    let error = Signature::new(params(), contract(1_000_000)).expect_err("nested too deep");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("nested"), "{error}");
    let balanced = arg(0).max(nested(1_000_000)) * 2 - nested(3);
    assert_eq!(balanced, nested(300));
}
