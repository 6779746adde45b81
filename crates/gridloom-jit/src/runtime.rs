//! Functions that compiled code calls.

use crate::spill_frame::{EntryShapes, FrameEntry, GroupExit};
use gridloom_interp::code::{CollectiveKind, Rmw};
use gridloom_interp::collective::Exchange;
use gridloom_interp::compiled::{EXITED, KEPT, Machine};
use gridloom_interp::lanes::{LANES, Lanewise, lanes_of};
use gridloom_interp::numeric::{F32, approx};
use gridloom_interp::{LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, racy};
use gridloom_ptx::op::ApproxOp;

/// The most operands or results of an interpreter instruction that compiled code calls.
pub(crate) const MOST: usize = 8;

/// Executes an instruction of the interpreter in some lanes. `values` holds its operands and
/// `results` receives its results, each for all lanes before the next. For an operand whose bit is
/// set in `once`, the first lane's value applies to all.
///
/// # Safety
/// `map` is an instruction of the running kernel with at most [`MOST`] operands and results. Each
/// array is as long as their number times `lanes`.
pub(crate) unsafe extern "C" fn call_map(
    map: *const Box<dyn Lanewise>,
    values: *const u64,
    results: *mut u64,
    lanes: u32,
    once: u32,
) {
    let lanes = lanes as usize;
    // SAFETY: the caller's promise.
    unsafe {
        let map = &**map;
        let (operands, destinations) = (map.sources().len().min(MOST), map.destinations().len().min(MOST));
        let (mut own, mut found) = ([0; MOST], [0; MOST]);
        for lane in 0..lanes {
            for (i, own) in own[..operands].iter_mut().enumerate() {
                let lane = if once >> i & 1 == 1 { 0 } else { lane };
                *own = *values.add(i * lanes + lane);
            }
            map.call(&own[..operands], &mut found[..destinations]);
            for (i, &found) in found[..destinations].iter().enumerate() {
                *results.add(i * lanes + lane) = found;
            }
        }
    }
}

/// The offset of the results of [`exchange`] in its frame, after masks, values and two more
/// operands of 32 lanes each; and the size of the frame.
pub(crate) const EXCHANGED: i32 = 4 * 8 * LANES as i32;
pub(crate) const EXCHANGE_BYTES: u32 = 5 * 8 * LANES as u32;

/// Executes a collective in some lanes of a warp. `frame` holds their masks, values and further
/// operands, each for all lanes before the next, and receives the results. For an operand whose bit
/// is set in `once`, the first lane's value applies to all. Returns the lanes whose predicate is
/// true in the low 32 bits and 1 above them, or 0 if other lanes must arrive first.
///
/// # Safety
/// `kind` belongs to an instruction of the running kernel, and the frame has [`EXCHANGE_BYTES`].
pub(crate) unsafe extern "C" fn exchange(
    kind: *const CollectiveKind,
    frame: *mut u64,
    lanes: u32,
    live: u32,
    once: u32,
) -> u64 {
    // SAFETY: the caller's promise.
    let (kind, operands) = unsafe { (*kind, std::slice::from_raw_parts(frame, 4 * LANES)) };
    let of = |i: usize, lane: usize| operands[i * LANES + if once >> i & 1 == 1 { 0 } else { lane }];
    let own: [u32; LANES] = std::array::from_fn(|lane| of(0, lane) as u32);
    let mut exchange = Exchange {
        value: std::array::from_fn(|lane| of(1, lane)),
        b: std::array::from_fn(|lane| of(2, lane)),
        c: std::array::from_fn(|lane| of(3, lane)),
        ..Exchange::default()
    };
    let mut rest = lanes;
    while rest != 0 {
        let mask = own[rest.trailing_zeros() as usize];
        let together =
            lanes_of(rest).filter(|&lane| own[lane as usize] == mask).fold(0, |bits, lane| bits | 1 << lane);
        if mask & live != together {
            return 0;
        }
        exchange.compute(kind, together);
        rest &= !together;
    }
    // SAFETY: the frame has room for the results after the operands.
    unsafe { frame.add(4 * LANES).copy_from_nonoverlapping(exchange.result.as_ptr(), LANES) };
    1 << 32 | u64::from(exchange.predicate)
}

/// Moves the registers of a group that is left to where the interpreter reads them, and records
/// where its threads are.
///
/// # Safety
/// The machine is that of the current call of compiled code, `thread` is the first of the group,
/// and `frame` is what was stored for `left`.
pub(crate) unsafe extern "C" fn leave(
    machine: *const Machine,
    thread: u32,
    left: *const GroupExit,
    frame: *const u8,
) {
    let index = thread as usize;
    // SAFETY: the tables of the machine have entries for all threads of the call and their warps.
    // The rest is the caller's promise.
    unsafe {
        let registers = *(*machine).registers.add(index / 32);
        let spilled = ((*machine).kept.cast_const(), thread);
        (*left).settle(frame, spilled, registers.add(index % 32), (*machine).pcs.add(index));
    }
}

/// Fills the frame of a group that is entered behind a barrier. Writes to `answer` whether its
/// registers have their shapes; if not, the threads are where the entry says.
///
/// # Safety
/// The machine is that of the current call of compiled code, and `thread` is the first of the
/// group.
pub(crate) unsafe extern "C" fn enter_frame(
    machine: *const Machine,
    thread: u32,
    entered: *const FrameEntry,
    answer: *mut u32,
) {
    let index = thread as usize;
    // SAFETY: the tables of the machine have entries for all threads of the call and their warps,
    // and there is a frame for each group. The rest is the caller's promise.
    unsafe {
        let registers = (*(*machine).registers.add(index / 32)).add(index % 32);
        let places = (*machine).pcs.add(index);
        *answer = (*entered).enter((*machine).kept, thread, registers, places).into();
    }
}

/// Checks whether the registers of a group that is entered have their shapes. Writes 1 or 0 to
/// `answer`.
///
/// # Safety
/// `registers` is the first slot in the first lane of the group.
pub(crate) unsafe extern "C" fn enter(registers: *const u64, entered: *const EntryShapes, answer: *mut u32) {
    // SAFETY: the caller's promise.
    unsafe { *answer = (*entered).holds(registers).into() };
}

/// A function that makes an access in some threads. The address increases by a step from thread to
/// thread, and a thread takes part if its 32-bit mask is not zero. `frame` has the elements, each
/// for all lanes before the next. An element of less than 32 bits takes 32 bits there.
pub(crate) type Masked = unsafe extern "C" fn(*mut u8, i64, *const u32, *mut u8, u32);

/// Packs the number of lanes, the size of an element in bytes and the number of elements of a
/// [`Masked`] access into one word.
pub(crate) fn masked_shape(lanes: u32, size: u32, elements: u32) -> u32 {
    lanes | size << 8 | elements << 16
}

/// Calls `access` for each element of a [`Masked`] access, with its place in memory and in the
/// frame.
///
/// # Safety
/// There are as many masks and elements as the shape says.
unsafe fn masked(
    [first, frame]: [*mut u8; 2],
    step: i64,
    masks: *const u32,
    shape: u32,
    mut access: impl FnMut(u32, *mut u8, *mut u8),
) {
    let [lanes, size, elements] = [shape & 0xff, shape >> 8 & 0xff, shape >> 16];
    for lane in 0..lanes {
        // SAFETY: the caller's promise.
        if unsafe { *masks.add(lane as usize) } == 0 {
            continue;
        }
        let memory = first.wrapping_offset((step as isize).wrapping_mul(lane as isize));
        for element in 0..elements {
            let held = size.max(4) * (element * lanes + lane);
            access(size, memory.wrapping_add((size * element) as usize), frame.wrapping_add(held as usize));
        }
    }
}

/// Loads elements of 1, 2, 4 or 8 bytes, as [`Masked`] describes.
///
/// # Safety
/// The elements may be accessed and are aligned to their size. There are as many masks and elements
/// as the shape says.
pub(crate) unsafe extern "C" fn load_masked(
    first: *mut u8,
    step: i64,
    masks: *const u32,
    frame: *mut u8,
    shape: u32,
) {
    // SAFETY: the caller's promise.
    unsafe {
        masked([first, frame], step, masks, shape, |size, memory, held| match size {
            8 => *held.cast::<u64>() = racy::load(memory, 8),
            size => *held.cast::<u32>() = racy::load(memory, size) as u32,
        });
    }
}

/// Stores elements of 1, 2, 4 or 8 bytes, as [`Masked`] describes.
///
/// # Safety
/// As for [`load_masked`].
pub(crate) unsafe extern "C" fn store_masked(
    first: *mut u8,
    step: i64,
    masks: *const u32,
    frame: *mut u8,
    shape: u32,
) {
    // SAFETY: the caller's promise.
    unsafe {
        masked([first, frame], step, masks, shape, |size, memory, held| match size {
            8 => racy::store(memory, 8, *held.cast::<u64>()),
            size => racy::store(memory, size, u64::from(*held.cast::<u32>())),
        });
    }
}

/// Atomically replaces a value in memory by a function of it. Returns the old value.
///
/// # Safety
/// `function` belongs to an instruction of the running kernel. `pointer` may be accessed so and is
/// aligned to `size`.
pub(crate) unsafe extern "C" fn update(
    function: *const Rmw,
    pointer: *mut u8,
    b: u64,
    c: u64,
    size: u32,
) -> u64 {
    // SAFETY: the caller's promise.
    unsafe {
        let function = &*function;
        racy::update(pointer, size, |old| function(old, b, c))
    }
}

/// Returns the host address of a generic address in a window, or null if it is no memory of the
/// thread. The address is aligned.
///
/// # Safety
/// The machine is that of the current call of compiled code, and `thread` is one of its threads.
pub(crate) unsafe extern "C" fn resolve(
    machine: *const Machine,
    thread: u32,
    address: u64,
    size: u32,
    writes: u32,
    params: u64,
) -> *mut u8 {
    // SAFETY: the caller's promise.
    let machine = unsafe { &*machine };
    let within = |start: *mut u8, length: u64, window: u64| {
        let offset = address - window;
        if offset.checked_add(u64::from(size)).is_some_and(|end| end <= length) {
            start.wrapping_add(offset as usize)
        } else {
            std::ptr::null_mut()
        }
    };
    match address >> 56 {
        1 if address >= SHARED_WINDOW => within(machine.shared, machine.shared_length, SHARED_WINDOW),
        2 => {
            // SAFETY: code with generic accesses counts as using local memory, so the table is set.
            let local = unsafe { *machine.local.wrapping_add(thread as usize) };
            within(local.start, local.length, LOCAL_WINDOW)
        }
        3 if writes == 0 => within(machine.params.cast_mut(), params, PARAM_WINDOW),
        _ => std::ptr::null_mut(),
    }
}

/// An approximate function in single precision, on bits.
pub(crate) type Approximate = extern "C" fn(u32, u32) -> u32;

/// Returns the approximate function of an instruction. Its second argument is `.ftz`.
pub(crate) fn approximate(op: ApproxOp) -> Approximate {
    extern "C" fn rsqrt(a: u32, ftz: u32) -> u32 {
        approx::rsqrt_f32(a, ftz != 0)
    }
    extern "C" fn sin(a: u32, ftz: u32) -> u32 {
        approx::sin_f32(a, ftz != 0)
    }
    extern "C" fn cos(a: u32, ftz: u32) -> u32 {
        approx::cos_f32(a, ftz != 0)
    }
    extern "C" fn lg2(a: u32, ftz: u32) -> u32 {
        approx::lg2_f32(a, ftz != 0)
    }
    extern "C" fn ex2(a: u32, ftz: u32) -> u32 {
        approx::ex2::<F32>(a, ftz != 0)
    }
    extern "C" fn tanh(a: u32, _: u32) -> u32 {
        approx::tanh::<F32>(a)
    }
    match op {
        ApproxOp::Rsqrt => rsqrt,
        ApproxOp::Sin => sin,
        ApproxOp::Cos => cos,
        ApproxOp::Lg2 => lg2,
        ApproxOp::Ex2 => ex2,
        ApproxOp::Tanh => tanh,
    }
}

/// An approximate single-precision function applied to many values in place. Its third argument is
/// `.ftz`.
pub(crate) type ApproximateMany = unsafe extern "C" fn(*mut u32, u32, u32);

/// Returns the approximate function of an instruction for the values of a group.
pub(crate) fn approximate_many(op: ApproxOp) -> Option<ApproximateMany> {
    Some(match op {
        ApproxOp::Ex2 => many::ex2,
        ApproxOp::Lg2 => many::lg2,
        ApproxOp::Sin => many::sin,
        ApproxOp::Cos => many::cos,
        ApproxOp::Tanh => many::tanh,
        ApproxOp::Rsqrt => return None,
    })
}

/// Approximate functions of many values. They compute what [`approx`] defines, in a form that
/// compilers vectorise.
mod many {
    use gridloom_interp::numeric::elementary;

    const MAGNITUDE: u32 = 0x7fff_ffff;
    const MIN_NORMAL: u32 = 0x0080_0000;

    #[inline(always)]
    fn flush(bits: u32, ftz: bool) -> u32 {
        if ftz && bits & MAGNITUDE < MIN_NORMAL { bits & !MAGNITUDE } else { bits }
    }

    #[inline(always)]
    fn each(values: &mut [u32], ftz: bool, function: impl Fn(f64) -> f64) {
        let replace = |value: &mut u32| {
            let result = function(f32::from_bits(flush(*value, ftz)).into()) as f32;
            let bits = flush(result.to_bits(), ftz);
            *value = if result.is_nan() { MAGNITUDE } else { bits };
        };
        // A known number of values becomes vectors without a remainder.
        let (eights, others) = values.as_chunks_mut::<8>();
        eights.iter_mut().for_each(|eight| eight.iter_mut().for_each(&replace));
        others.iter_mut().for_each(replace);
    }

    /// Computes sines or cosines. Those of large numbers are computed one by one.
    #[inline(always)]
    fn turns(values: &mut [u32], ftz: bool, small: impl Fn(f64) -> f64, large: fn(f64) -> f64) {
        let is_small = |bits: u32| f64::from(f32::from_bits(bits)).abs() <= elementary::MOST_RADIANS;
        if values.iter().fold(true, |all, &value| all & is_small(value)) {
            each(values, ftz, small);
        } else {
            each(values, ftz, large);
        }
    }

    macro_rules! functions {
        ($($name:ident: |$values:ident, $ftz:ident| $compute:expr;)*) => {
            $(
                /// # Safety
                /// There are `count` values.
                pub(super) unsafe extern "C" fn $name(values: *mut u32, count: u32, ftz: u32) {
                    #[inline(always)]
                    fn compute($values: &mut [u32], $ftz: bool) {
                        $compute
                    }
                    #[cfg(target_arch = "x86_64")]
                    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw")]
                    fn compute_widest(values: &mut [u32], ftz: bool) {
                        compute(values, ftz);
                    }
                    #[cfg(target_arch = "x86_64")]
                    #[target_feature(enable = "avx2")]
                    fn compute_wide(values: &mut [u32], ftz: bool) {
                        compute(values, ftz);
                    }
                    // SAFETY: the caller's promise.
                    let values = unsafe { std::slice::from_raw_parts_mut(values, count as usize) };
                    #[cfg(target_arch = "x86_64")]
                    if crate::wide::is_available() {
                        // SAFETY: the machine has these instructions.
                        return unsafe { compute_widest(values, ftz != 0) };
                    }
                    #[cfg(target_arch = "x86_64")]
                    if std::arch::is_x86_feature_detected!("avx2") {
                        // SAFETY: the machine has these instructions.
                        return unsafe { compute_wide(values, ftz != 0) };
                    }
                    compute(values, ftz != 0);
                }
            )*
        };
    }

    functions! {
        ex2: |values, ftz| each(values, ftz, elementary::exp2);
        lg2: |values, ftz| each(values, ftz, elementary::log2);
        sin: |values, ftz| turns(values, ftz, |x| elementary::sin_cos(x).0, elementary::sin);
        cos: |values, ftz| turns(values, ftz, |x| elementary::sin_cos(x).1, elementary::cos);
        tanh: |values, _ftz| each(values, false, elementary::tanh);
    }
}

/// Stores an affine value of `bits` bits to the slot of some lanes: `value` in the first, and a
/// step more in each that follows.
///
/// # Safety
/// `slot` is the register of the first lane, in a slot that contains the others.
pub(crate) unsafe extern "C" fn store_affine(slot: *mut u64, value: u64, step: i64, lanes: u32, bits: u32) {
    for lane in 0..lanes as usize {
        let value = value.wrapping_add_signed(step.wrapping_mul(lane as i64));
        // SAFETY: the caller's promise.
        unsafe { *slot.add(lane) = if bits == 64 { value } else { value & u64::from(u32::MAX) } };
    }
}

/// Records where idle threads are, in the entry of the first thread of each group.
///
/// # Safety
/// `places` is the table of the machine of the current call of compiled code, and the threads are
/// those of its block.
pub(crate) unsafe extern "C" fn note_idle(places: *mut u32, from: u32, to: u32, lanes: u32, place: u32) {
    for thread in (from..to).step_by(lanes as usize) {
        // SAFETY: the caller's promise.
        unsafe { *places.add(thread as usize) = place };
    }
}

/// A function that records where groups of threads are.
pub(crate) type Note = unsafe extern "C" fn(*mut u32, u32, u32, u32, u32);

/// Records where the groups of threads are that have not left: those whose entry is still that of
/// an earlier barrier or of the start.
///
/// # Safety
/// As for [`note_idle`].
pub(crate) unsafe extern "C" fn note_arrived(places: *mut u32, from: u32, to: u32, lanes: u32, place: u32) {
    for thread in (from..to).step_by(lanes as usize) {
        // SAFETY: the caller's promise. All lanes of a group are in the block.
        let group = unsafe { std::slice::from_raw_parts_mut(places.add(thread as usize), lanes as usize) };
        let waited = group[0] != EXITED && group[0] & KEPT != 0;
        if waited || group.iter().all(|&place| place == EXITED) {
            group[0] = place;
        }
    }
}

/// Clears the shared memory of a block before it starts.
///
/// # Safety
/// The machine is that of the current call of compiled code.
pub(crate) unsafe extern "C" fn clear_shared(machine: *const Machine) {
    // SAFETY: the caller's promise.
    unsafe { (*machine).shared.write_bytes(0, (*machine).shared_length as usize) };
}

/// Prefetches a line of memory into the caches, if the machine has such an instruction. Any address
/// is allowed.
pub(crate) const FETCH: Option<unsafe extern "C" fn()> = fetch::FETCH;

#[cfg(target_arch = "x86_64")]
mod fetch {
    pub(super) const FETCH: Option<unsafe extern "C" fn()> = Some(fetch);

    /// Receives the address in the first argument register of System V, on every system, and
    /// preserves all registers.
    ///
    /// # Safety
    /// Only compiled code calls this.
    #[unsafe(naked)]
    unsafe extern "C" fn fetch() {
        std::arch::naked_asm!("prefetcht0 [rdi]", "ret")
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod fetch {
    pub(super) const FETCH: Option<unsafe extern "C" fn()> = None;
}
