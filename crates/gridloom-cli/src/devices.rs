//! `gridloom devices`.

use gridloom::{Device, DeviceKind};
use serde_json::json;

use crate::Failure;
use crate::output::say;

/// Lists every device with its properties.
pub(crate) fn list(json: bool) -> Result<(), Failure> {
    let devices = Device::all()?;
    let kind = |device: &Device| match device.kind() {
        DeviceKind::Cpu => "cpu".to_owned(),
        DeviceKind::Cuda => format!("cuda:{}", device.ordinal()),
        _ => "other".to_owned(),
    };
    let missing = match devices.iter().any(|device| device.kind() == DeviceKind::Cuda) {
        true => None,
        false => Device::cuda(0).err(),
    };
    if json {
        let devices: Vec<serde_json::Value> = devices
            .iter()
            .map(|device| {
                let properties: serde_json::Map<_, _> =
                    device.properties().into_iter().map(|(name, value)| (name, value.into())).collect();
                json!({ "id": kind(device), "name": device.name(), "properties": properties })
            })
            .collect();
        let missing = missing.map(|error| error.to_string());
        return say!("{:#}", json!({ "devices": devices, "no_cuda_because": missing }));
    }
    for device in &devices {
        say!("{:8} {}", kind(device), device.name())?;
        for (name, value) in device.properties() {
            say!("         {name}: {value}")?;
        }
    }
    match missing {
        Some(error) => say!("cuda     none: {error}"),
        None => Ok(()),
    }
}
