//! Lanes of one wave that store to the same bytes in one instruction: what all but one of them store is lost.

use crate::exec::memory::form::{UPDATE, UPDATE_OF_BASE};
use crate::exec::state::ctx::{Ctx, Ins, side};
use crate::exec::state::request::{Data, Place, Request, Shape};
use crate::exec::state::wave::Wave;
use crate::fault::{Access, FaultKind, Side};

/// Whether an instruction writes back what it has read there, see [`crate::exec::lower::updates`].
pub(super) fn is_update(w: &Wave, i: &Ins, r: &Request<'_>) -> bool {
    // The load had no offsets of lanes.
    let base = || w.scalar64(&i.c).wrapping_add_signed(i.imm.into());
    i.half & UPDATE != 0 || i.half & UPDATE_OF_BASE != 0 && r.at[r.exec.trailing_zeros() as usize & 31] == base()
}

/// Reports lanes that store different values to the same bytes, or that update them (`update`), whatever the values.
pub(super) fn check(c: &mut Ctx<'_>, w: &Wave, i: &Ins, r: &Request<'_>, update: bool) {
    if r.shape == Shape::Uniform && !update && is_one_value(w, r) {
        return;
    }
    let size = u64::from(r.size);
    let mut places = [(0, 0u32); 32];
    let (mut count, mut end, mut rising) = (0, 0, true);
    for lane in (0..32).filter(|lane| r.exec >> lane & 1 != 0) {
        let at = r.at[lane as usize];
        rising &= at >= end;
        end = at.saturating_add(size);
        places[count] = (at, lane);
        count += 1;
    }
    if rising {
        return;
    }
    let places = &mut places[..count];
    places.sort_unstable();
    let meets = |pair: &&[(u64, u32)]| {
        let (one, other) = (pair[0], pair[1]);
        other.0 - one.0 < size && (update || differ(w, r, one, other))
    };
    let mut pairs = places.windows(2).filter(meets);
    let Some(pair) = pairs.next() else {
        return;
    };
    let more = pairs.count() as u64;
    let ((_, one), (at, other)) = (pair[0], pair[1]);
    report(c, w, i, r, update, (at, other), w.first_lane + one);
    c.count(i, kind(r), more);
}

fn kind(r: &Request<'_>) -> FaultKind {
    match r.place {
        Place::Lds => FaultKind::LdsRace,
        _ => FaultKind::GlobalRace,
    }
}

/// Reports what a lane stores at an address where lane `one` of the wave stores too.
fn report(c: &mut Ctx<'_>, w: &Wave, i: &Ins, r: &Request<'_>, update: bool, (at, other): (u64, u32), one: u32) {
    let pc = c.text + u64::from(i.at);
    if let Some(fault) = c.fault(w, i, kind(r), Access::Store, other, at, r.size) {
        fault.note = if update {
            "lanes of one wave read a place and write it back: all of their updates but one are lost".to_owned()
        } else {
            "lanes of one wave write different values to one place: all but one are lost".to_owned()
        };
        fault.other = side(w, pc, fault, Access::Store, 0).map(|side| Box::new(Side { lane: one, ..*side }));
    }
}

/// What lanes 0 to 31 of a wave of 64 store by the running instruction. The other lanes do the same in a second pass, and no
/// order of the two is promised.
#[derive(Default)]
pub(super) struct LowerHalf(Vec<LaneStore>);

struct LaneStore {
    place: Place,
    at: u64,
    lane: u32,
    update: bool,
    bytes: [u8; 16],
    size: usize,
}

impl LowerHalf {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Takes a store of the lower lanes, or compares one of the upper lanes with those.
    pub(super) fn meet(&mut self, c: &mut Ctx<'_>, w: &Wave, i: &Ins, r: &Request<'_>, update: bool) {
        let lanes = (0..32).filter(|lane| r.exec >> lane & 1 != 0);
        let stores = lanes.map(|lane| LaneStore {
            place: r.place,
            at: r.at[lane as usize],
            lane,
            update,
            bytes: std::array::from_fn(|n| match n < r.size as usize {
                true => r.data.byte(w, lane as usize, n).unwrap_or_default(),
                false => 0,
            }),
            size: (r.size as usize).min(16),
        });
        if w.high.is_some() {
            return self.0.extend(stores);
        }
        let stores: Vec<LaneStore> = stores.collect();
        for (n, store) in stores.iter().enumerate() {
            // `check` has counted it.
            if stores[..n].iter().any(|before| before.collides(store)) {
                continue;
            }
            if let Some(below) = self.0.iter().find(|below| below.collides(store)) {
                report(c, w, i, r, update && below.update, (store.at, store.lane), below.lane);
            }
        }
    }
}

impl LaneStore {
    /// Whether both store different bytes where they meet, or update them, whatever the values.
    fn collides(&self, other: &Self) -> bool {
        let end = |store: &Self| store.at.saturating_add(store.size as u64);
        let (first, last) = (self.at.max(other.at), end(self).min(end(other)));
        let byte = |store: &Self, at: u64| store.bytes[(at - store.at) as usize];
        let mut both = first..last;
        self.place == other.place
            && !both.is_empty()
            && (self.update && other.update || both.any(|at| byte(self, at) != byte(other, at)))
    }
}

/// Whether all lanes store the same.
fn is_one_value(w: &Wave, r: &Request<'_>) -> bool {
    let first = r.exec.trailing_zeros() as usize & 31;
    let same = |reg: usize, mask: u32| {
        let lanes = &w.v[reg & 255].0;
        (0..32).all(|l| r.exec >> l & 1 == 0 || (lanes[l] ^ lanes[first]) & mask == 0)
    };
    match r.data {
        Data::None | Data::Into(_) | Data::Texels { whole: false, .. } => true,
        Data::Words(reg) | Data::Texels { first: reg, .. } => {
            (0..r.size as usize / 4).all(|n| same(reg as usize + n, u32::MAX))
        }
        Data::Bytes(reg, shift) => same(reg as usize, ((1u64 << (8 * r.size)) - 1 << shift) as u32),
    }
}

/// Whether two lanes, the second not before the first, store different bytes where they meet.
fn differ(w: &Wave, r: &Request<'_>, (first, one): (u64, u32), (second, other): (u64, u32)) -> bool {
    let (apart, size) = ((second - first) as usize, r.size as usize);
    (apart..size).any(|n| r.data.byte(w, one as usize, n) != r.data.byte(w, other as usize, n - apart))
}
