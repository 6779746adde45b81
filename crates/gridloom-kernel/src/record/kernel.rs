//! Recording of a kernel, once for each instance.

use std::any::TypeId;
use std::cell::Cell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;

use crate::ir::{ShapeRules, Target, cleanup, optimize, print, uniform};
use crate::record::recorder::{Abandoned, RecordError, finish, start};

/// A kernel as it was recorded.
#[derive(Debug)]
pub struct Recorded {
    /// Its name in the PTX.
    pub name: String,
    /// The PTX.
    pub ptx: String,
    /// What it asks of the shape of its launches.
    pub rules: ShapeRules,
}

static RECORDED: LazyLock<Mutex<HashMap<(TypeId, bool, Target), Arc<Recorded>>>> =
    LazyLock::new(Mutex::default);

thread_local! {
    static IS_FOR_GPUS: Cell<bool> = const { Cell::new(false) };
}

/// Calls `act`. Kernels that it loads are recorded as for GPUs, whatever device loads them. CPUs run
/// them too, more slowly: so what GPUs run can be tested without one.
pub fn as_for_gpus<R>(act: impl FnOnce() -> R) -> R {
    struct Reset(bool);
    impl Drop for Reset {
        fn drop(&mut self) {
            IS_FOR_GPUS.set(self.0);
        }
    }
    let _reset = Reset(IS_FOR_GPUS.replace(true));
    act()
}

/// Returns the kernel of an instance for some devices, with its indices checked or not. `record` is
/// called where it was not recorded before.
pub fn record_kernel(
    instance: TypeId,
    is_unchecked: bool,
    target: Target,
    name: &str,
    record: fn(),
) -> Result<Arc<Recorded>, RecordError> {
    let target = if IS_FOR_GPUS.get() { Target::Gpu } else { target };
    let instance = (instance, is_unchecked, target);
    if let Some(known) = RECORDED.lock().get(&instance) {
        return Ok(known.clone());
    }
    let recorded = Arc::new(record_anew(is_unchecked, target, name, &record)?);
    Ok(RECORDED.lock().entry(instance).or_insert(recorded).clone())
}

/// Records a kernel, whether it was recorded before or not.
pub fn record_anew(
    is_unchecked: bool,
    target: Target,
    name: &str,
    record: &dyn Fn(),
) -> Result<Recorded, RecordError> {
    let before = start(name, is_unchecked, target);
    let ended = catch_unwind(AssertUnwindSafe(record));
    let program = finish(before);
    match ended {
        Err(panic) if !panic.is::<Abandoned>() => resume_unwind(panic),
        _ => {}
    }
    let mut program = program?;
    cleanup::clean_up(&mut program);
    uniform::check(&program).map_err(|divergence| {
        let site = &program.sites[divergence.site.0 as usize];
        RecordError { message: site.message.clone(), file: site.file, line: site.line }
    })?;
    optimize::optimize(&mut program);
    Ok(Recorded { ptx: print::print(&program), name: program.name, rules: program.rules })
}
