//! The device that the command line asks for.

use gridloom::{CpuOptions, Device};

use crate::Failure;
use crate::args::{DeviceArgs, DeviceChoice};

/// Opens it. Without `--device`, the best one, or the CPU where an option only the CPU has is given.
pub(crate) fn device(args: &DeviceArgs, step_limit: Option<u64>) -> Result<Device, Failure> {
    let cpu_only = args.checked || args.engine.is_some() || step_limit.is_some();
    let choice = args.device.or(cpu_only.then_some(DeviceChoice::Cpu));
    match choice {
        Some(DeviceChoice::Cuda) if cpu_only => Err(
            "--engine, --checked and --step-limit are for the CPU device; leave them out or use --device cpu"
                .into(),
        ),
        Some(DeviceChoice::Cuda) => Ok(Device::cuda(0)?),
        Some(DeviceChoice::Cpu) => {
            let mut options = CpuOptions::new().checked(args.checked).step_limit(step_limit);
            if let Some(engine) = args.engine {
                options.engine = engine.into();
            }
            Ok(Device::cpu_with(options)?)
        }
        None => Ok(Device::best()?),
    }
}
