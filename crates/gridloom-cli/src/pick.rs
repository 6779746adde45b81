//! Selection of the device that the command line names.

use gridloom::{CpuOptions, Device, Engine};

use crate::args::{DeviceArgs, DeviceChoice};
use crate::{Failure, output};

/// Limits of the CPU device.
#[derive(Clone, Copy, Default)]
pub(crate) struct Limits {
    /// The most instructions of a thread.
    pub(crate) steps: Option<u64>,
    /// The most bytes of memory, if that is less than the system can give.
    pub(crate) memory: Option<u64>,
}

/// Opens the device that the arguments name. Without `--device` that is `default`, or else the best
/// device, or the CPU if an option is given that only the CPU has.
pub(crate) fn device(
    args: &DeviceArgs,
    default: Option<DeviceChoice>,
    limits: Limits,
) -> Result<Device, Failure> {
    let cpu_only = args.checked || args.unchecked || args.engine.is_some() || limits.steps.is_some();
    match args.device.or(cpu_only.then_some(DeviceChoice::Cpu)).or(default) {
        Some(DeviceChoice::Cuda) if cpu_only => {
            Err("--engine, --checked, --unchecked and --step-limit are for the CPU device; leave them out or use --device cpu".into())
        }
        Some(DeviceChoice::Cuda) => Ok(Device::cuda(0)?),
        Some(DeviceChoice::Cpu) => cpu(args, limits),
        None => match Device::cuda(0) {
            Ok(device) => Ok(device),
            Err(_) => cpu(args, limits),
        },
    }
}

/// Opens the CPU device. It checks every access unless told otherwise, so that no kernel can reach
/// memory of the command itself.
fn cpu(args: &DeviceArgs, limits: Limits) -> Result<Device, Failure> {
    let memory = match (limits.memory, memory_limit()) {
        (Some(wanted), Some(available)) => Some(wanted.min(available)),
        (wanted, available) => wanted.or(available),
    };
    let mut options = CpuOptions::new()
        .checked(!args.unchecked)
        .step_limit(limits.steps)
        .memory_limit(memory)
        .print(output::write_printed);
    if let Some(engine) = args.engine {
        options.engine = engine.into();
    }
    if options.engine == Engine::Jit && !args.unchecked {
        return Err(
            "machine code does not check accesses; use --engine jit with --unchecked, or leave --engine out"
                .into(),
        );
    }
    Ok(Device::cpu_with(options)?)
}

/// Returns half of the memory that the system has available, if it says how much. The other half is
/// for a copy of the results, which is made before they are written.
pub(crate) fn memory_limit() -> Option<u64> {
    available(&std::fs::read_to_string("/proc/meminfo").ok()?).map(|bytes| bytes / 2)
}

/// Returns the bytes that `/proc/meminfo` calls available.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::available;

    #[test]
    fn the_available_memory_is_read_from_what_linux_says() {
        assert_eq!(available("MemTotal:  8 kB\nMemAvailable:     2048 kB\n"), Some(2048 * 1024));
        assert_eq!(available("MemTotal:  8 kB\n"), None);
    }
}
