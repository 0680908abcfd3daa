//! Host memory that HIP allocates. Large blocks are mapped, so that a page costs memory and time only when somebody touches it.

use std::alloc::{Layout, alloc_zeroed, dealloc};

/// Host pages; pinned memory starts at one.
const PAGE: usize = 4096;
/// Up to this size memory comes from the host's allocator. What is freed usually stays mapped there: a program that goes on using it
/// runs the same way each time.
const SMALL: usize = 256 << 10;

/// Real host memory, owned.
pub(crate) struct HostBlock {
    address: usize,
    size: usize,
    mapped: bool,
}

impl HostBlock {
    /// `size` bytes that all read as `byte`.
    pub(crate) fn new(size: usize, byte: u8) -> Option<Self> {
        let size = size.max(1);
        let block = if size > SMALL { Self::map(size) } else { None };
        let block = block.or_else(|| Self::allocate(size))?;
        if byte != 0 && !(block.mapped && block.show(byte)) {
            let pointer = std::ptr::with_exposed_provenance_mut::<u8>(block.address);
            // SAFETY: the block was just made, with this size.
            unsafe { pointer.write_bytes(byte, size) };
        }
        Some(block)
    }

    pub(crate) fn address(&self) -> usize {
        self.address
    }

    fn layout(size: usize) -> Option<Layout> {
        Layout::from_size_align(size, PAGE).ok()
    }

    fn allocate(size: usize) -> Option<Self> {
        // SAFETY: the size is at least 1.
        let pointer = unsafe { alloc_zeroed(Self::layout(size)?) };
        (!pointer.is_null()).then(|| Self {
            address: pointer.expose_provenance(),
            size,
            mapped: false,
        })
    }
}

impl Drop for HostBlock {
    fn drop(&mut self) {
        if self.mapped {
            self.unmap();
        } else if let Some(layout) = Self::layout(self.size) {
            let pointer = std::ptr::with_exposed_provenance_mut::<u8>(self.address);
            // SAFETY: `allocate` allocated it with this layout, and only this value owns it.
            unsafe { dealloc(pointer, layout) };
        }
    }
}

#[cfg(target_os = "linux")]
impl HostBlock {
    fn map(size: usize) -> Option<Self> {
        use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new map, at an address that the system picks.
        let pointer = unsafe { mmap_anonymous(std::ptr::null_mut(), size, access, flags) }.ok()?;
        Some(Self {
            address: pointer.expose_provenance(),
            size,
            mapped: true,
        })
    }

    /// Has the whole pages among `size` bytes from `address` on read as zero, without touching them. Returns where they begin and how many
    /// bytes they are; nothing of a block that is not mapped.
    pub(crate) fn clear(&self, address: usize, size: usize) -> Option<(usize, usize)> {
        use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
        let start = address.next_multiple_of(PAGE);
        let bytes = address.checked_add(size)?.checked_sub(start)? / PAGE * PAGE;
        let inside = self.address <= start && start + bytes <= self.address + self.size;
        if !self.mapped || !inside || bytes <= SMALL {
            return None;
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
        let place = std::ptr::with_exposed_provenance_mut(start);
        // SAFETY: these are whole pages inside the map of this block, checked above; who may write there has asked for zeros.
        unsafe { mmap_anonymous(place, bytes, access, flags) }.ok()?;
        Some((start, bytes))
    }

    fn unmap(&self) {
        let pointer = std::ptr::with_exposed_provenance_mut(self.address);
        // SAFETY: `map` has mapped this range, and only this value owns it, which is dropped.
        let _ = unsafe { rustix::mm::munmap(pointer, self.size) };
    }

    /// Shows one file of this byte at all places of the block: a page is copied when it is written. False where there is no such file.
    fn show(&self, byte: u8) -> bool {
        use rustix::mm::{MapFlags, ProtFlags, mmap};
        let Some(file) = pattern(byte) else {
            return false;
        };
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
        (0..self.size).step_by(PATTERN).all(|from| {
            let part = PATTERN.min(self.size - from);
            let place = std::ptr::with_exposed_provenance_mut(self.address + from);
            // SAFETY: the part lies inside the map of this block, which nobody else knows yet; `PATTERN` is a number of whole pages. Nobody
            // writes to the file.
            unsafe { mmap(place, part, access, flags, file, 0) }.is_ok()
        })
    }
}

/// Elsewhere the host's allocator has large blocks, too.
#[cfg(not(target_os = "linux"))]
impl HostBlock {
    fn map(_size: usize) -> Option<Self> {
        None
    }

    pub(crate) fn clear(&self, _address: usize, _size: usize) -> Option<(usize, usize)> {
        None
    }

    fn unmap(&self) {}

    fn show(&self, _byte: u8) -> bool {
        false
    }
}

/// Bytes of the file that [`HostBlock::show`] maps.
#[cfg(target_os = "linux")]
const PATTERN: usize = 16 << 20;

/// The file with [`PATTERN`] bytes of all ones, made once; none for other bytes.
#[cfg(target_os = "linux")]
fn pattern(byte: u8) -> Option<&'static std::fs::File> {
    use std::os::unix::fs::FileExt;
    static ONES: std::sync::OnceLock<Option<std::fs::File>> = std::sync::OnceLock::new();
    let make = || {
        let file = rustix::fs::memfd_create("rocmforge-pinned", rustix::fs::MemfdFlags::CLOEXEC).ok()?;
        let file = std::fs::File::from(file);
        let part = vec![u8::MAX; 1 << 20];
        for at in (0..PATTERN).step_by(part.len()) {
            file.write_all_at(&part, at as u64).ok()?;
        }
        Some(file)
    };
    ONES.get_or_init(make).as_ref().filter(|_| byte == u8::MAX)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// Kilobytes of this block that are in memory and its own. Other tests of the process do not count.
    fn own_kilobytes(block: &HostBlock) -> u64 {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut inside = false;
        let mut sum = 0;
        for line in maps.lines() {
            let mut words = line.split_whitespace();
            let (Some(name), Some(figure)) = (words.next(), words.next()) else {
                continue;
            };
            if let Some((start, end)) = name.split_once('-') {
                let address = |text| usize::from_str_radix(text, 16).unwrap();
                inside = address(start) < block.address + block.size && block.address < address(end);
            } else if inside && matches!(name, "Private_Clean:" | "Private_Dirty:") {
                sum += figure.parse::<u64>().unwrap();
            }
        }
        sum
    }

    #[test]
    fn gigabytes_cost_no_memory_before_they_are_touched() {
        for byte in [0, u8::MAX] {
            let size = (8 << 30) + 12_345;
            let block = HostBlock::new(size, byte).unwrap();
            let at = |offset: usize| std::ptr::with_exposed_provenance_mut::<u8>(block.address() + offset);
            // Both ends, borders of the parts, and places between.
            for offset in [0, 1, PATTERN - 1, PATTERN, 3 * PATTERN + 5, size / 2, size - 1] {
                // SAFETY: inside the block.
                assert_eq!(unsafe { at(offset).read() }, byte, "at {offset}");
                // SAFETY: as above.
                unsafe { at(offset).write(7) };
                // SAFETY: as above.
                assert_eq!(unsafe { at(offset).read() }, 7);
            }
            // SAFETY: as above. One part's bytes are not another's.
            assert_eq!(unsafe { at(PATTERN + 5).read() }, byte);
            let touched = own_kilobytes(&block);
            assert!(
                (20..64 << 10).contains(&touched),
                "{touched} kB for a few bytes of {size}"
            );
        }
    }

    #[test]
    fn gigabytes_are_cleared_without_being_touched() {
        for byte in [0, u8::MAX] {
            let size = 4 << 30;
            let block = HostBlock::new(size, byte).unwrap();
            let at = |offset: usize| std::ptr::with_exposed_provenance_mut::<u8>(block.address() + offset);
            // SAFETY: inside the block.
            unsafe { at(PAGE).write(7) };
            let before = own_kilobytes(&block);
            assert!(before >= 4, "{before} kB with one page touched");
            let cleared = block.clear(block.address() + 100, size - 200);
            assert_eq!(cleared, Some((block.address() + PAGE, size - 2 * PAGE)));
            for (offset, read) in [(PAGE - 1, byte), (PAGE, 0), (size / 2, 0), (size - PAGE, byte)] {
                // SAFETY: as above.
                assert_eq!(unsafe { at(offset).read() }, read, "at {offset}");
            }
            let touched = own_kilobytes(&block).saturating_sub(before);
            assert!(touched < 1 << 10, "{touched} kB more");
            assert_eq!(
                block.clear(block.address() + size - (1 << 20), 2 << 20),
                None,
                "past the end"
            );
            assert_eq!(block.clear(block.address(), SMALL), None, "little");
        }
    }

    #[test]
    fn small_blocks_are_filled() {
        for (size, byte) in [(1, 0xFF), (4097, 0xFF), (SMALL + 1, 0xAB), (5000, 0)] {
            let block = HostBlock::new(size, byte).unwrap();
            let start = std::ptr::with_exposed_provenance::<u8>(block.address());
            // SAFETY: the block has this size.
            let bytes = unsafe { std::slice::from_raw_parts(start, size) };
            assert!(bytes.iter().all(|one| *one == byte), "{size} bytes of {byte}");
            assert_eq!(block.address() % 4096, 0);
        }
    }
}
