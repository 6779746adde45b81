//! Element types that devices cannot align memory for.

use bytemuck::{Pod, Zeroable};
use gridloom::prelude::*;

use crate::support::{for_each_device, refused};

/// One page.
#[derive(Clone, Copy)]
#[repr(C, align(4096))]
struct Page([u8; 4096]);

// SAFETY: plain bytes without padding.
unsafe impl Zeroable for Page {}
// SAFETY: as above.
unsafe impl Pod for Page {}

/// As strict as it may be.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, align(256))]
struct Aligned256([u8; 256]);

// SAFETY: plain bytes without padding.
unsafe impl Zeroable for Aligned256 {}
// SAFETY: as above.
unsafe impl Pod for Aligned256 {}

#[test]
fn memory_for_elements_of_a_stricter_alignment_than_devices_give_is_refused() {
    for_each_device(|device| {
        let kind = ErrorKind::NotSupported;
        let says = ["Page", "4096", "256"];
        let error = |result: Result<Buffer<Page>>| refused(result, kind, &says);
        error(device.alloc(1));
        error(device.alloc_host(1));
        error(device.alloc_managed(1));
        error(device.stream()?.alloc(1));
        let graph = Graph::new(device);
        refused(graph.alloc::<Page>(1).map(drop), kind, &says);
        refused(graph.empty()?.alloc::<Page>(1).map(drop), kind, &says);
        let stream = device.stream()?;
        let capture = stream.capture()?;
        refused(capture.alloc::<Page>(1).map(drop), kind, &says);
        Ok(())
    });
}

#[test]
fn memory_is_aligned_for_elements_of_256_bytes() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let odd = device.alloc_host::<u8>(3)?;
        let host = device.alloc_host::<Aligned256>(2)?;
        assert!(host.address()?.is_multiple_of(256) && odd.len() == 3);
        let graph = Graph::new(device);
        let first = graph.alloc::<u8>(3)?;
        let memory = first.alloc::<Aligned256>(2)?;
        memory
            .memset(&memory, 7u8)?
            .memset(&first, 1u8)?
            .memcpy(&host, &memory)?
            .free(&memory)?
            .free(&first)?;
        graph.instantiate()?.launch(&stream)?;
        stream.synchronize()?;
        assert_eq!(host.to_vec()?, [Aligned256([7; 256]); 2]);
        Ok(())
    });
}
