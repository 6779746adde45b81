//! Any bytes as a saved graph, and any JSON as the graph in one. What is accepted is launched on a
//! checked device with limits.
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
    if let Err(error) = GraphFile::from_bytes(bytes, &Limits::default()) {
        assert!(!error.to_string().is_empty());
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
    let file = GraphFile {
        modules: vec![PTX.to_owned(); document.modules],
        constants: vec![vec![7; 64]; document.constants],
        inputs: inputs.collect(),
        document,
    };
    let Ok(bytes) = file.to_bytes() else { return };
    assert_eq!(GraphFile::from_bytes(&bytes, &Limits::default()).unwrap(), file);
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
});
