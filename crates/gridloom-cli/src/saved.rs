//! Saved graphs, and the values for their inputs.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use gridloom::file::{Array, DType, LoadedGraph, Port};
use gridloom::{Device, LoadOptions};

use crate::args::{DeviceArgs, Inputs};
use crate::pick::Limits;
use crate::{Failure, files, pick};

/// The largest saved graph, and the largest array, that is read.
const MOST_BYTES: u64 = 4 << 30;

/// Reads a graph in any form, or standard input where the path is `-`. Only a saved graph may be
/// larger than a text.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut start = [0; 4];
    let is_archive = path.as_os_str() != "-"
        && path.is_file()
        && File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok()
        && gridloom_file::GraphFile::is_archive(&start);
    files::read(path, if is_archive { MOST_BYTES } else { files::MOST_TEXT })
}

/// Returns the most memory that a graph may use.
fn memory_limit(inputs: &Inputs) -> u64 {
    let usual = LoadOptions::new().memory_limit;
    match inputs.memory {
        Some(mebibytes) => mebibytes.saturating_mul(1 << 20),
        None => pick::memory_limit().map_or(usual, |available| available.min(usual)),
    }
}

/// Opens the device for a saved graph. On the CPU, what the graph's kernels need counts as memory
/// of the graph too: variables of modules and of threads.
pub(crate) fn device(args: &DeviceArgs, inputs: &Inputs) -> Result<Device, Failure> {
    pick::device(args, None, Limits { memory: Some(memory_limit(inputs)), ..Limits::default() })
}

/// Loads the contents of a saved graph onto a device and sets its inputs.
pub(crate) fn load(
    name: &str,
    bytes: &[u8],
    device: &Device,
    inputs: &Inputs,
) -> Result<LoadedGraph, Failure> {
    if !gridloom_file::GraphFile::is_archive(bytes) {
        return Err(format!("{name}: this is no saved graph; Graph::save writes one").into());
    }
    let options = LoadOptions::new().memory_limit(memory_limit(inputs));
    // SAFETY: the CPU device checks every access, unless `--unchecked` was given: whoever gives it
    // vouches for the file, as with any program. A GPU does not reach memory of this process, other
    // than what was given to it.
    let loaded = unsafe { options.load_bytes(bytes, device) }
        .map_err(|error| format!("{name}: {}", crate::describe(&error)))?;
    let mut given: Vec<&str> = Vec::new();
    for setting in &inputs.set {
        set(&loaded, setting)?;
        let (name, _) = split("--set", "NAME=VALUE", setting)?;
        if given.contains(&name) {
            return Err(format!("--set {setting}: {name} is set twice; give it one value").into());
        }
        given.push(name);
    }
    Ok(loaded)
}

/// Gives all inputs their first values again, after launches that changed them.
pub(crate) fn reset(loaded: &LoadedGraph, bytes: &[u8], inputs: &Inputs) -> Result<(), Failure> {
    let limits = gridloom_file::Limits::default().memory(u64::MAX);
    let file = gridloom_file::GraphFile::from_bytes(bytes, &limits)?;
    for (port, array) in file.document.inputs.iter().zip(&file.inputs) {
        loaded.set(&port.name, array)?;
    }
    inputs.set.iter().try_for_each(|setting| set(loaded, setting))
}

/// Splits `NAME=VALUE`. The form is what a user is told to write.
pub(crate) fn split<'a>(option: &str, form: &str, text: &'a str) -> Result<(&'a str, &'a str), Failure> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => Ok((name, value)),
        _ => Err(format!("{option} {text}: write it as {option} {form}").into()),
    }
}

fn set(loaded: &LoadedGraph, setting: &str) -> Result<(), Failure> {
    let (name, value) = split("--set", "NAME=VALUE", setting)?;
    let Some(port) = loaded.inputs().find(|port| port.name == name) else {
        let names: Vec<&str> = loaded.inputs().map(|port| port.name.as_str()).collect();
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return Err(format!("--set {setting}: no input is called {name}; the graph has {known}").into());
    };
    let array = match number(port, value) {
        Some(array) => array.map_err(|error| format!("--set {setting}: {error}"))?,
        None => {
            let path = Path::new(value);
            let bytes = files::read(path, MOST_BYTES)
                .map_err(|error| format!("--set {setting}: not a number, and no file: {error}"))?;
            Array::from_npy(&bytes).map_err(|error| files::about(path, error))?
        }
    };
    loaded.set(name, &array).map_err(|error| format!("--set {setting}: {error}").into())
}

/// Returns an array in which every element is the number that a text is. Returns `None` if the text
/// is no number.
fn number(port: &Port, text: &str) -> Option<Result<Array, String>> {
    let float: f64 = text.parse().ok()?;
    Some(element_of(port.dtype, text, float).and_then(|bytes| {
        let data = bytes.repeat(port.len() as usize);
        Array::new(port.dtype, port.shape.clone(), data).map_err(|error| error.to_string())
    }))
}

/// Returns the bytes of an element that is this number, written as `text`. A number with a fraction
/// is rounded to a type of such numbers, and no number becomes another whole number.
fn element_of(dtype: DType, text: &str, float: f64) -> Result<Vec<u8>, String> {
    let DType { code, size } = dtype;
    let bits = 8 * size;
    let (low, high) = match code {
        'f' => {
            let (bytes, rounded) = match size {
                2 => (half::f16::from_f64(float).to_le_bytes().to_vec(), half::f16::from_f64(float).to_f64()),
                4 => ((float as f32).to_le_bytes().to_vec(), f64::from(float as f32)),
                _ => (float.to_le_bytes().to_vec(), float),
            };
            let names_infinity = text.trim_start_matches(['+', '-']).to_ascii_lowercase().starts_with("inf");
            return match rounded.is_infinite() && !names_infinity {
                true => Err(format!("{text} is too large for an element of type {dtype}")),
                false => Ok(bytes),
            };
        }
        'i' => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
        'u' => (0, (1i128 << bits) - 1),
        'b' => (0, 1),
        _ => return Err(format!("elements of type {dtype} cannot be given as a number; give an npy file")),
    };
    // Forms such as 1e3 are whole numbers too.
    let is_whole = float.fract() == 0.0 && float.abs() <= 2f64.powi(53);
    let whole: Option<i128> = text.parse().ok().or(is_whole.then_some(float as i128));
    match whole.filter(|whole| (low..=high).contains(whole)) {
        Some(whole) => Ok(whole.to_le_bytes()[..size as usize].to_vec()),
        None => Err(format!("write a whole number from {low} to {high}, or an npy file")),
    }
}

/// Describes an array in a line: type, shape, and the first elements.
pub(crate) fn describe(array: &Array) -> String {
    const MOST: usize = 8;
    let shape: Vec<String> = array.shape.iter().map(u64::to_string).collect();
    let elements = array.data.chunks_exact(array.dtype.size as usize);
    let shown: Vec<String> = elements.take(MOST).map(|bytes| element(array.dtype, bytes)).collect();
    let more = if array.len() as usize > MOST { ", …" } else { "" };
    format!("{} [{}]: {}{more}", array.dtype, shape.join(" × "), shown.join(", "))
}

/// Returns one element as text.
pub(crate) fn element(dtype: DType, bytes: &[u8]) -> String {
    let mut wide = [0u8; 8];
    let length = bytes.len().min(8);
    wide[..length].copy_from_slice(&bytes[..length]);
    let bits = u64::from_le_bytes(wide);
    match (dtype.code, dtype.size) {
        ('f', 2) => half::f16::from_bits(bits as u16).to_string(),
        ('f', 4) => f32::from_bits(bits as u32).to_string(),
        ('f', 8) => f64::from_bits(bits).to_string(),
        ('i', size @ (1 | 2 | 4 | 8)) => {
            let unused = 64 - 8 * size;
            (((bits << unused) as i64) >> unused).to_string()
        }
        ('u', 1 | 2 | 4 | 8) => bits.to_string(),
        ('b', 1) => (bits != 0).to_string(),
        _ => gridloom_file::hex::encode(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_shown_as_their_type_says() {
        let shown = |dtype: &str, bytes: &[u8]| element(DType::parse(dtype).unwrap(), bytes);
        assert_eq!(shown("<f4", &1.5f32.to_le_bytes()), "1.5");
        assert_eq!(shown("<f8", &(-0.25f64).to_le_bytes()), "-0.25");
        assert_eq!(shown("|i1", &[0xff]), "-1");
        assert_eq!(shown("<i4", &(-7i32).to_le_bytes()), "-7");
        assert_eq!(shown("<u8", &u64::MAX.to_le_bytes()), u64::MAX.to_string());
        assert_eq!(shown("|b1", &[1]), "true");
        assert_eq!(shown("|V3", &[1, 2, 255]), "0102ff");
    }

    #[test]
    fn numbers_become_elements_of_any_type_or_are_refused() {
        let bytes =
            |dtype: &str, text: &str| element_of(DType::parse(dtype).unwrap(), text, text.parse().unwrap());
        assert_eq!(bytes("<i4", "-2147483648"), Ok(i32::MIN.to_le_bytes().to_vec()));
        assert_eq!(bytes("<i4", "1e3"), Ok(1000i32.to_le_bytes().to_vec()));
        assert_eq!(bytes("<u8", "18446744073709551615"), Ok(vec![0xff; 8]));
        assert_eq!(bytes("|b1", "1"), Ok(vec![1]));
        assert_eq!(bytes("<f2", "65504"), Ok(half::f16::MAX.to_le_bytes().to_vec()));
        assert_eq!(bytes("<f4", "-inf"), Ok(f32::NEG_INFINITY.to_le_bytes().to_vec()));
        assert!(bytes("<f4", "NaN").is_ok());
        for (dtype, text) in [
            ("<i4", "2147483648"),
            ("<i4", "3.5"),
            ("<i4", "NaN"),
            ("<i8", "1e300"),
            ("|u1", "-1"),
            ("|b1", "2"),
            ("<f2", "65536"),
            ("<f4", "1e39"),
            ("<f8", "1e999"),
            ("<c8", "1"),
            ("|V4", "1"),
        ] {
            assert!(bytes(dtype, text).is_err(), "{text} as {dtype}");
        }
    }

    #[test]
    fn a_setting_has_a_name_and_a_value() {
        assert_eq!(split("--set", "NAME=VALUE", "x=a=b").unwrap(), ("x", "a=b"));
        for wrong in ["x", "=1", "x="] {
            assert!(split("--set", "NAME=VALUE", wrong).is_err());
        }
    }
}
