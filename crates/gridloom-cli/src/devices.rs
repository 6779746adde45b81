//! `gridloom devices`.

use gridloom::{Device, DeviceKind};

use crate::Failure;
use crate::output::say;

/// Lists every device with its properties.
pub(crate) fn list() -> Result<(), Failure> {
    let devices = Device::all()?;
    for device in &devices {
        let kind = match device.kind() {
            DeviceKind::Cpu => "cpu".to_owned(),
            DeviceKind::Cuda => format!("cuda:{}", device.ordinal()),
            _ => "other".to_owned(),
        };
        say!("{kind:8} {}", device.name())?;
        for (name, value) in device.properties() {
            say!("         {name}: {value}")?;
        }
    }
    if devices.iter().all(|device| device.kind() != DeviceKind::Cuda)
        && let Err(error) = Device::cuda(0)
    {
        say!("cuda     none: {error}")?;
    }
    Ok(())
}
