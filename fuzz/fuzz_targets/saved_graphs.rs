//! Any bytes as a saved graph, as an array, and as the `graph.json` of a saved graph. What is
//! accepted is shown, compared with itself, saved again and launched on a checked device with
//! limits, as `gridloom show`, `diff` and `run` do.
#![no_main]

use std::sync::LazyLock;
use std::time::Duration;

use gridloom::{CpuOptions, Device, Engine, LoadOptions};
use gridloom_file::{Array, DType, GraphFile, Limits};
use libfuzzer_sys::fuzz_target;

const PTX: &str = include_str!("../../crates/gridloom/tests/support/graph.ptx");
const MEMORY: u64 = 1 << 20;

static DEVICE: LazyLock<Device> = LazyLock::new(|| {
    let options = CpuOptions::new().engine(Engine::Interpreter).checked(true).threads(1);
    Device::cpu_with(options.memory_limit(64 << 20).step_limit(10_000).node_limit(1_000)).unwrap()
});

fuzz_target!(|bytes: &[u8]| {
    match Array::from_npy(bytes) {
        Ok(array) => assert_eq!(Array::from_npy(&array.to_npy()).unwrap(), array),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    match GraphFile::from_bytes(bytes, &Limits::default()) {
        Ok(file) => accepted(&file),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    // An archive with right checksums around the text, so that more of it is looked at.
    let Ok(document) = serde_json::from_slice::<gridloom_file::document::Document>(bytes) else { return };
    if document.modules > 4 || document.constants > 16 || document.check(&Limits::default().memory(MEMORY)).is_err()
    {
        return;
    }
    let inputs = document.inputs.iter().map(|port| {
        let data = vec![0; port.region.bytes as usize];
        Array::new(DType::parse(&port.dtype).unwrap(), port.shape.clone(), data).unwrap()
    });
    accepted(&GraphFile {
        modules: vec![PTX.to_owned(); document.modules],
        constants: vec![vec![7; 64]; document.constants],
        inputs: inputs.collect(),
        document,
    });
});

/// Does everything with a file whose parts fit each other.
fn accepted(file: &GraphFile) {
    let Ok(bytes) = file.to_bytes() else { return };
    assert_eq!(&GraphFile::from_bytes(&bytes, &Limits::default().memory(u64::MAX)).unwrap(), file);
    let picture = gridloom_view::saved::picture(file).expect("what can be read can be shown");
    assert!(picture.diff(&picture).is_empty());
    assert!(!picture.to_tree().is_empty() && !picture.to_svg().is_empty() && !picture.to_html(None).is_empty());
    let options = LoadOptions::new().memory_limit(MEMORY);
    let Ok(loaded) = options.load_bytes_checked(&bytes, &DEVICE) else { return };
    let again = loaded.saver().to_bytes().expect("what was loaded can be saved");
    let twice = options.load_bytes_checked(&again, &DEVICE).expect("and loaded again");
    assert!(twice.saver().to_bytes().unwrap() == again);
    let stream = DEVICE.stream().unwrap();
    if let Ok(executable) = loaded.graph().instantiate()
        && executable.launch(&stream).is_ok()
        && stream.synchronize_timeout(Duration::from_millis(500)).is_err()
    {
        executable.cancel();
        let _ = stream.synchronize();
    }
}
