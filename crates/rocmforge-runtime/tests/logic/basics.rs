//! Opening, copying, tensors.

use super::rig::{Rig, backend, cards};
use rocmforge_hip_sys::*;
use rocmforge_runtime::*;

#[test]
fn a_copy_comes_back() {
    let (rig, backend) = backend();
    let stream = backend.stream();
    for len in [0, 1, 31, 32, 33, 1 << 18, (5 << 18) + 3, (9 << 18) + 1] {
        let data: Vec<f32> = (0..len).map(|i| i as f32).collect();
        let buffer = HipBuffer::from_slice(stream, &data, "data").unwrap();
        assert_eq!(buffer.to_vec(stream).unwrap(), data, "{len} elements");
    }
    assert_eq!(rig.count("hipEventCreateWithFlags"), 0, "one stream needs no event");
    drop(backend);
    assert_eq!(rig.sim.leaks(), []);
    assert_eq!(rig.violations(), [""; 0]);
}

#[test]
fn hip_buffer_alloc_size_invariant() {
    let (_rig, backend) = backend();
    for size in [1usize, 31, 32, 33, 4096, 4097] {
        let buffer = backend.allocate_buffer_safe(size).unwrap();
        assert_eq!(
            (buffer.len(), buffer.byte_len(), buffer.bytes()),
            (size, size, Bytes(size as u64))
        );
        assert_eq!(backend.card().ledger().live_bytes(), Bytes(size as u64));
        drop(buffer);
        backend.synchronize().unwrap();
    }
}

#[test]
fn device_tensor_size_bytes_consistency() {
    let (_rig, backend) = backend();
    for shape in [&[][..], &[1], &[0, 5], &[3, 5], &[2, 3, 5, 7]] {
        let tensor = DeviceTensor::empty_safe(&backend, shape).unwrap();
        let elements: usize = shape.iter().product();
        assert_eq!(
            (tensor.len(), tensor.size_bytes(), tensor.buffer().byte_len()),
            (elements, elements * 4, elements * 4)
        );
        assert_eq!(tensor.shape(), shape);
        assert_eq!(tensor.to_host().unwrap(), vec![0.0; elements]);
    }
}

#[test]
fn tensors_check_their_shape() {
    let (_rig, backend) = backend();
    let tensor = DeviceTensor::from_host(&backend, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]).unwrap();
    assert_eq!(
        tensor.reshape(&[3, 2]).unwrap().to_host().unwrap(),
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    );
    for error in [
        tensor.reshape(&[7]).unwrap_err(),
        DeviceTensor::from_host(&backend, &[1.0], &[2]).unwrap_err(),
        DeviceTensor::from_buffer(&backend, tensor.buffer().clone(), &[5]).unwrap_err(),
    ] {
        assert!(matches!(error, HipError::Shape { .. }), "{error}");
    }
    assert!(matches!(
        tensor.copy_from_host(&[0.0; 5]),
        Err(HipError::LengthMismatch { .. })
    ));
}

/// A file of the numbers 0, 1, 2, ... as little-endian f32.
fn mapped(len: usize) -> (tempfile::NamedTempFile, memmap2::Mmap) {
    use std::io::Write;
    let mut file = tempfile::NamedTempFile::new().unwrap();
    for i in 0..len {
        file.write_all(&(i as f32).to_le_bytes()).unwrap();
    }
    // SAFETY: nobody else knows the file.
    let map = unsafe { memmap2::Mmap::map(file.as_file()).unwrap() };
    (file, map)
}

#[test]
fn test_device_tensor_from_mmap_basic() {
    let (_rig, backend) = backend();
    let (_file, map) = mapped(6);
    let tensor = DeviceTensor::from_mmap(&backend, &map, 0..24, &[2, 3]).unwrap();
    assert_eq!(tensor.to_host().unwrap(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
}

#[test]
fn test_device_tensor_from_mmap_partial_range() {
    let (_rig, backend) = backend();
    let (_file, map) = mapped(6);
    let tensor = DeviceTensor::from_mmap(&backend, &map, 8..20, &[3]).unwrap();
    assert_eq!(tensor.to_host().unwrap(), [2.0, 3.0, 4.0]);
    // No alignment is asked for: two halves of neighbouring numbers.
    let tensor = DeviceTensor::from_mmap(&backend, &map, 2..6, &[1]).unwrap();
    assert_eq!(
        tensor.to_host().unwrap(),
        [f32::from_le_bytes([map[2], map[3], map[4], map[5]])]
    );
}

#[test]
fn test_device_tensor_from_mmap_empty_range() {
    let (_rig, backend) = backend();
    let (_file, map) = mapped(6);
    let tensor = DeviceTensor::from_mmap(&backend, &map, 12..12, &[0]).unwrap();
    assert!(tensor.is_empty());
    assert_eq!(tensor.to_host().unwrap(), [0.0f32; 0]);
}

#[test]
fn test_device_tensor_from_mmap_bounds_check() {
    let (_rig, backend) = backend();
    let (_file, map) = mapped(6);
    #[allow(clippy::reversed_empty_ranges)] // that is the test
    for range in [0..28, 24..28, 20..16, usize::MAX - 3..usize::MAX] {
        let error = DeviceTensor::from_mmap(&backend, &map, range, &[1]).unwrap_err();
        assert!(matches!(error, HipError::OutOfRange { .. }), "{error}");
    }
    for (range, shape) in [(0..23, [5]), (0..24, [5]), (0..16, [5])] {
        let error = DeviceTensor::from_mmap(&backend, &map, range, &shape).unwrap_err();
        assert!(matches!(error, HipError::Shape { .. }), "{error}");
    }
}

#[test]
fn views_and_casts() {
    let (_rig, backend) = backend();
    let stream = backend.stream();
    let bytes: Vec<u8> = (0..64).collect();
    let buffer = HipBuffer::from_slice(stream, &bytes, "bytes").unwrap();
    let view = buffer.view(4..20).unwrap();
    assert_eq!(view.to_vec(stream).unwrap(), &bytes[4..20]);
    let inner = view.view(4..8).unwrap();
    assert_eq!(inner.to_vec(stream).unwrap(), &bytes[8..12]);
    inner.copy_from_host(stream, &[0xff; 4]).unwrap();
    let words = view.cast::<u32>().unwrap();
    assert_eq!(
        words.to_vec(stream).unwrap(),
        [0x0706_0504, 0xffff_ffff, 0x0f0e_0d0c, 0x1312_1110]
    );
    assert!(buffer.shares_memory(&inner));
    #[allow(clippy::reversed_empty_ranges)] // that is the test
    for range in [0..65, 65..65, 3..2, 0..usize::MAX] {
        assert!(matches!(buffer.view(range), Err(HipError::OutOfRange { len: 64, .. })));
    }
    assert!(buffer.view(64..64).unwrap().is_empty());
    assert!(matches!(
        buffer.view(1..5).unwrap().cast::<u32>(),
        Err(HipError::Cast { .. })
    ));
    assert!(matches!(
        buffer.view(0..5).unwrap().cast::<u32>(),
        Err(HipError::Cast { .. })
    ));
}

#[test]
fn copies_check_lengths_and_overlap() {
    let (_rig, backend) = backend();
    let stream = backend.stream();
    let buffer = HipBuffer::<u32>::zeroed(stream, Elems(8), "b").unwrap();
    assert!(matches!(
        buffer.copy_from_host(stream, &[0; 7]),
        Err(HipError::LengthMismatch { left: 8, right: 7, .. })
    ));
    assert!(matches!(
        buffer.copy_to_host(stream, &mut [0; 9]),
        Err(HipError::LengthMismatch { .. })
    ));
    let (low, high) = (buffer.view(0..5).unwrap(), buffer.view(3..8).unwrap());
    assert!(matches!(
        low.copy_from_buffer(stream, &high),
        Err(HipError::Overlap { .. })
    ));
    assert!(matches!(
        low.copy_from_buffer(stream, &buffer),
        Err(HipError::LengthMismatch { .. })
    ));
    buffer
        .view(0..4)
        .unwrap()
        .copy_from_buffer(stream, &buffer.view(4..8).unwrap())
        .unwrap();
}

#[test]
fn asynchronous_copies_own_their_memory() {
    let (rig, backend) = backend();
    let stream = backend.stream();
    let epoch = backend.card().ledger().epoch();
    let buffer = HipBuffer::<u32>::zeroed(stream, Elems(1000), "b").unwrap();
    let mut data = PinnedBuffer::<u32>::zeroed(&backend, Elems(1000), "upload").unwrap();
    data.iter_mut().zip(0..).for_each(|(value, i)| *value = i);
    let upload = buffer.upload_async(stream, data).unwrap();
    let download = buffer.download_async(stream).unwrap();
    // Dropped while it is under way: the memory stays until the copy is done.
    drop(upload);
    drop(buffer.download_async(stream).unwrap());
    assert_eq!(rig.count("hipHostFree"), 0);
    let values = download.wait().unwrap();
    assert!(values.iter().zip(0..).all(|(&value, i)| value == i));
    drop((values, buffer));
    backend.synchronize().unwrap();
    assert!(epoch.leaks().is_clean(), "{}", epoch.leaks());
    assert_eq!(rig.violations(), [""; 0]);
    assert_eq!(rig.sim.pinned_count(), 0, "nothing went through staging");
}

#[test]
fn memory_figures() {
    let (_rig, backend) = backend();
    let (free, total) = backend.get_memory_info().unwrap();
    assert_eq!(total, 1 << 30);
    assert!(free <= total);
    assert!(backend.safe_alloc_size().unwrap() <= free);
    let of_two = Rig::with(|config| config.cards = cards(2));
    let devices = HipBackend::devices(&of_two.provider(), std::time::Duration::from_secs(1)).unwrap();
    assert_eq!(devices.len(), 2);
    assert_eq!(devices[1].pci, DeviceKey("none:01:00.0".to_owned()));
    drop(of_two.open().unwrap());
    assert_eq!(hipSuccess, hipError_t(0));
}

#[test]
fn pinned_memory_has_its_elements_alignment_or_is_refused() {
    /// More than a page, which is what the driver aligns to.
    #[derive(Clone, Copy)]
    #[repr(C, align(65536))]
    struct Huge([u8; 65536]);
    // SAFETY: an array of bytes.
    unsafe impl bytemuck::Zeroable for Huge {}
    // SAFETY: an array of bytes, as large as its alignment: no padding.
    unsafe impl bytemuck::Pod for Huge {}

    let (rig, backend) = backend();
    let epoch = backend.card().ledger().epoch();
    // One in sixteen pages is aligned by chance.
    let mut aligned = Vec::new();
    let error = loop {
        match PinnedBuffer::<Huge>::zeroed(&backend, Elems(4), "huge") {
            Ok(buffer) => aligned.push(buffer),
            Err(error) => break error,
        }
        assert!(aligned.len() < 100, "every page is aligned to 64 KiB");
    };
    assert!(aligned.iter().all(|buffer| buffer.as_ptr().is_aligned()));
    assert!(matches!(error, HipError::Cast { align: 65536, .. }), "{error}");
    drop(aligned);
    assert!(epoch.leaks().is_clean());
    assert_eq!(rig.sim.pinned_count(), 0);
}
