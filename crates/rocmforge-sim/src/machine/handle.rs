//! Handles that carry a generation: one that outlived its object is recognised, also when its slot is in use again.

/// What a handle stands for. It is part of the handle, so a stream passed as an event is recognised too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Stream = 1,
    Event = 2,
    Module = 3,
    Function = 4,
    Pool = 5,
    Graph = 6,
    GraphExec = 7,
    Array = 8,
    GraphNode = 9,
    UserObject = 10,
    PhysicalMemory = 11,
}

/// What a handle turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Refers to a live object.
    Live,
    /// Referred to an object that has been destroyed.
    Stale,
    /// Was never handed out by this table.
    Unknown,
}

struct Slot<T> {
    generation: u32,
    /// The call that made the object.
    made_by: u64,
    value: Option<T>,
}

/// Objects by handle. A handle is a number that no pointer can be (not canonical), so using it as one traps.
pub(crate) struct Table<T> {
    kind: Kind,
    slots: Vec<Slot<T>>,
    free: Vec<usize>,
}

const SLOT_SHIFT: u32 = 4;
const GENERATION_SHIFT: u32 = 32;
const KIND_SHIFT: u32 = 60;
const SLOT_MASK: u64 = (1 << (GENERATION_SHIFT - SLOT_SHIFT)) - 1;
const GENERATION_MASK: u64 = (1 << (KIND_SHIFT - GENERATION_SHIFT)) - 1;

impl<T> Table<T> {
    pub(crate) fn new(kind: Kind) -> Self {
        Self {
            kind,
            slots: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Keeps `value`, made by the call of this number. The most recently freed slot is used again at once, as allocators do.
    pub(crate) fn insert(&mut self, value: T, call: u64) -> u64 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                generation: 0,
                made_by: 0,
                value: None,
            });
            self.slots.len() - 1
        });
        let entry = &mut self.slots[slot];
        entry.generation += 1;
        entry.made_by = call;
        entry.value = Some(value);
        (self.kind as u64) << KIND_SHIFT | u64::from(entry.generation) << GENERATION_SHIFT | (slot as u64) << SLOT_SHIFT
    }

    /// The calls that made the live objects.
    pub(crate) fn made_by(&self) -> Vec<u64> {
        let live = self.slots.iter().filter(|slot| slot.value.is_some());
        live.map(|slot| slot.made_by).collect()
    }

    fn locate(&self, handle: u64) -> (Found, usize) {
        let slot = (handle >> SLOT_SHIFT & SLOT_MASK) as usize;
        let generation = handle >> GENERATION_SHIFT & GENERATION_MASK;
        let of_this_table = handle >> KIND_SHIFT == self.kind as u64 && handle & ((1 << SLOT_SHIFT) - 1) == 0;
        let found = match self.slots.get(slot) {
            _ if !of_this_table => Found::Unknown,
            Some(entry) if u64::from(entry.generation) == generation && entry.value.is_some() => Found::Live,
            Some(entry) if generation >= 1 && generation <= u64::from(entry.generation) => Found::Stale,
            _ => Found::Unknown,
        };
        (found, slot)
    }

    pub(crate) fn find(&self, handle: u64) -> Found {
        self.locate(handle).0
    }

    pub(crate) fn get(&self, handle: u64) -> Option<&T> {
        match self.locate(handle) {
            (Found::Live, slot) => self.slots[slot].value.as_ref(),
            _ => None,
        }
    }

    pub(crate) fn get_mut(&mut self, handle: u64) -> Option<&mut T> {
        match self.locate(handle) {
            (Found::Live, slot) => self.slots[slot].value.as_mut(),
            _ => None,
        }
    }

    pub(crate) fn remove(&mut self, handle: u64) -> Option<T> {
        match self.locate(handle) {
            (Found::Live, slot) => {
                self.free.push(slot);
                self.slots[slot].value.take()
            }
            _ => None,
        }
    }

    /// The live objects.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().filter_map(|slot| slot.value.as_mut())
    }

    /// Destroys every object that `keep` does not want.
    pub(crate) fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        for (index, slot) in self.slots.iter_mut().enumerate() {
            if slot.value.as_ref().is_some_and(|value| !keep(value)) {
                slot.value = None;
                self.free.push(index);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_dies_with_its_object_although_the_slot_is_used_again() {
        let mut table = Table::new(Kind::Stream);
        let first = table.insert('a', 1);
        assert_eq!(table.remove(first), Some('a'));
        let second = table.insert('b', 2);
        assert_ne!(first, second);
        assert_eq!(table.find(first), Found::Stale);
        assert_eq!(table.get(first), None);
        assert_eq!(
            table.remove(first),
            None,
            "a stale handle must not destroy the new object"
        );
        assert_eq!(table.get(second), Some(&'b'));
    }

    #[test]
    fn numbers_that_were_never_handles_are_unknown() {
        let mut streams = Table::new(Kind::Stream);
        let mut events = Table::new(Kind::Event);
        let stream = streams.insert((), 1);
        let event = events.insert((), 1);
        for odd in [
            0,
            1,
            2,
            0xFFFF,
            u64::MAX,
            event,
            stream + 1,
            stream + (1 << 32),
            stream + 16,
        ] {
            assert_eq!(streams.find(odd), Found::Unknown, "{odd:#x}");
        }
    }
}
