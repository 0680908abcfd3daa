//! Variables of the code object, and what instructions with the address of one have accessed.
//!
//! The address of a variable is a constant in the code, and an index is added to it. Which variable it was is not known: clang makes
//! `table[c - 8]`, with `c` from 8 on, an index `c` to the address 32 B before `table`, where another variable may be. But it was one. So an
//! instruction that accesses a variable, and also memory that is no part of it, has an index beyond that variable, whichever lanes and
//! workgroups did the one and the other. So has one that accesses memory outside of the code object. Both are known when the launch has
//! ended; the access itself goes on, since the memory is there.

use crate::fault::{Access, Fault, FaultKind};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;

/// A variable of the code object, or several that overlap.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Variable {
    /// Device addresses.
    pub(crate) addresses: Range<u64>,
    pub(crate) name: String,
}

/// An instruction with the address of a variable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct VariableAccess {
    pub(crate) how: Access,
    /// Bytes a lane accesses.
    pub(crate) size: u32,
    /// ELF address of the instruction.
    pub(crate) pc: u64,
    /// Number of the variable that the constant in the code is an address in, if there is one.
    pub(crate) near: Option<usize>,
}

/// The variables of a code object, and the instructions with the address of one.
#[derive(Clone, Debug)]
pub(crate) struct Variables {
    /// By their addresses.
    pub(crate) all: Vec<Variable>,
    /// Device addresses of the code object.
    pub(crate) object: Range<u64>,
    pub(crate) accesses: Vec<VariableAccess>,
}

impl Variables {
    /// Those with the addresses and names given, in any order. Of variables that overlap it makes one.
    pub(crate) fn new(mut all: Vec<Variable>, object: Range<u64>) -> Self {
        all.sort_by_key(|variable| (variable.addresses.start, variable.addresses.end));
        all.dedup_by(|next, last| {
            let overlap = next.addresses.start < last.addresses.end;
            if overlap {
                last.addresses.end = last.addresses.end.max(next.addresses.end);
            }
            overlap
        });
        Self {
            all,
            object,
            accesses: Vec::new(),
        }
    }

    /// Number of the variable at a device address.
    pub(crate) fn at(&self, address: u64) -> Option<usize> {
        let after = self.all.partition_point(|variable| variable.addresses.start <= address);
        after
            .checked_sub(1)
            .filter(|&last| self.all[last].addresses.contains(&address))
    }

    fn place(&self, address: u64) -> Place {
        match self.at(address) {
            Some(number) => Place::Variable(number),
            None if self.object.contains(&address) => Place::Object,
            None => Place::Elsewhere,
        }
    }

    /// The faults of a launch that has accessed these places.
    pub(crate) fn faults(&self, reached: &Reached) -> Vec<Fault> {
        let mut numbers: Vec<u32> = reached.places.keys().map(|&(number, _)| number).collect();
        numbers.dedup();
        numbers
            .into_iter()
            .filter_map(|number| self.fault(number, reached))
            .collect()
    }

    /// The fault of an instruction, by its number.
    fn fault(&self, number: u32, reached: &Reached) -> Option<Fault> {
        let access = self.accesses.get(number as usize)?;
        let places = reached
            .places
            .range((number, Place::Variable(0))..=(number, Place::Elsewhere));
        let first = places.clone().find_map(|(&(_, place), _)| match place {
            Place::Variable(number) => Some(number),
            _ => None,
        });
        // The one that the address is in, if it was accessed, is more likely what was meant.
        let meant = access.near.filter(|_| reached.near(number)).or(first);
        let wrong = places.filter(|((_, place), _)| match (meant, place) {
            (Some(meant), place) => *place != Place::Variable(meant),
            (None, place) => *place == Place::Elsewhere,
        });
        let reach = wrong.map(|(_, reach)| *reach).reduce(Reach::and)?;
        Some(Fault {
            kind: FaultKind::GlobalOutOfBounds,
            access: access.how,
            address: reach.address,
            size: access.size,
            pc: access.pc,
            frames: Vec::new(),
            workgroup: reach.workgroup,
            wave: reach.wave,
            lane: reach.lane,
            count: reach.count,
            other: None,
            note: self.wording(meant.and_then(|meant| self.all.get(meant)), reach.address),
        })
    }

    /// What is wrong with an access to an address.
    fn wording(&self, meant: Option<&Variable>, address: u64) -> String {
        let Some(Variable { addresses, name }) = meant else {
            return "an index is added to the address of a variable, and leads out of the code object".to_owned();
        };
        let distance = match address.checked_sub(addresses.end) {
            Some(behind) => format!("{behind} B past the end of"),
            None => format!("{} B before", addresses.start.saturating_sub(address)),
        };
        let place = match self.place(address) {
            Place::Variable(number) => format!("in variable `{}`, ", self.all[number].name),
            Place::Object | Place::Elsewhere => String::new(),
        };
        let size = addresses.end - addresses.start;
        format!("{place}{distance} variable `{name}` of {size} B, which the same instruction accesses")
    }
}

/// A place that an instruction with the address of a variable accesses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Place {
    /// A variable, by its number.
    Variable(usize),
    /// Another part of the code object. There may be variables without a name.
    Object,
    /// Other memory.
    Elsewhere,
}

/// A lane's access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reach {
    pub(crate) workgroup: [u32; 3],
    pub(crate) wave: u32,
    pub(crate) lane: u32,
    /// Device address.
    pub(crate) address: u64,
    /// Lanes that it stands for.
    pub(crate) count: u64,
}

impl Reach {
    /// One that stands for both: the same, whichever ran first.
    fn and(self, other: Self) -> Self {
        let key = |reach: &Self| {
            let [x, y, z] = reach.workgroup;
            [z, y, x, reach.wave]
        };
        let first = if key(&other) < key(&self) { other } else { self };
        Self {
            count: self.count + other.count,
            ..first
        }
    }
}

/// The places that instructions with the address of a variable have accessed in some workgroups of a launch.
#[derive(Default)]
pub(crate) struct Reached {
    /// By the number of the instruction: whether it has accessed the variable that its constant is an address in.
    near: Vec<bool>,
    /// By that number and place: all other accesses.
    places: BTreeMap<(u32, Place), Reach>,
}

impl Reached {
    /// Whether an instruction has accessed the variable that its constant is an address in.
    pub(crate) fn near(&self, number: u32) -> bool {
        self.near.get(number as usize).is_some_and(|&near| near)
    }

    /// Notes that it has.
    pub(crate) fn note_near(&mut self, number: u32) {
        let all = self.near.len().max(number as usize + 1);
        self.near.resize(all, false);
        self.near[number as usize] = true;
    }

    /// Notes another access.
    pub(crate) fn note(&mut self, number: u32, variables: &Variables, reach: Reach) {
        self.put((number, variables.place(reach.address)), reach);
    }

    fn put(&mut self, at: (u32, Place), reach: Reach) {
        match self.places.entry(at) {
            Entry::Vacant(place) => drop(place.insert(reach)),
            Entry::Occupied(mut place) => drop(place.insert(place.get().and(reach))),
        }
    }

    /// Adds what other workgroups have accessed.
    pub(crate) fn add(&mut self, other: Self) {
        let near = (0..).zip(other.near).filter(|(_, near)| *near);
        near.for_each(|(number, _)| self.note_near(number));
        other.places.into_iter().for_each(|(at, reach)| self.put(at, reach));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: Range<u64> = 0x1000..0x1020;
    const NEXT: Range<u64> = 0x1020..0x1040;

    fn variable(addresses: Range<u64>, name: &str) -> Variable {
        let name = name.to_owned();
        Variable { addresses, name }
    }

    /// A code object with two variables, and an instruction whose constant is in the first of them.
    fn variables(near: Option<usize>) -> Variables {
        let all = vec![variable(NEXT, "next"), variable(TABLE, "table")];
        let mut variables = Variables::new(all, 0..0x2000);
        variables.accesses.push(VariableAccess {
            how: Access::Load,
            size: 4,
            pc: 0x1800,
            near,
        });
        variables
    }

    fn reach(group: u32, address: u64) -> Reach {
        Reach {
            workgroup: [group, 0, 0],
            wave: 0,
            lane: 3,
            address,
            count: 1,
        }
    }

    /// What is reported of accesses to the variable near the constant, and to other addresses by workgroups.
    fn report(near: Option<usize>, accessed: bool, others: &[(u32, u64)]) -> Option<(u32, u64, u64, String)> {
        let variables = variables(near);
        let parts = |order: &mut dyn Iterator<Item = &(u32, u64)>| {
            let mut all = Reached::default();
            for &(group, address) in order {
                let mut part = Reached::default();
                part.note(0, &variables, reach(group, address));
                all.add(part);
            }
            if accessed {
                all.note_near(0);
            }
            variables.faults(&all)
        };
        let (forth, back) = (parts(&mut others.iter()), parts(&mut others.iter().rev()));
        assert_eq!(forth, back, "the order of the workgroups does not matter");
        assert!(forth.len() < 2);
        let fault = forth.into_iter().next()?;
        Some((fault.workgroup[0], fault.address, fault.count, fault.note))
    }

    #[test]
    fn variables_that_overlap_are_one() {
        let all = vec![
            variable(0x1010..0x1018, "inner"),
            variable(NEXT, "next"),
            variable(TABLE, "table"),
        ];
        let variables = Variables::new(all, 0..0x2000);
        let names: Vec<&str> = variables.all.iter().map(|variable| variable.name.as_str()).collect();
        assert_eq!(names, ["table", "next"]);
        assert_eq!(
            [0xFFF, 0x1000, 0x101F, 0x1020, 0x1040].map(|at| variables.at(at)),
            [None, Some(0), Some(0), Some(1), None]
        );
    }

    #[test]
    fn an_instruction_that_accesses_two_variables_has_an_index_beyond_one() {
        let (group, address, count, note) =
            report(Some(0), true, &[(2, 0x1024), (1, 0x1028), (3, 0x1020)]).expect("a fault");
        assert_eq!((group, address, count), (1, 0x1028, 3));
        assert_eq!(
            note,
            "in variable `next`, 8 B past the end of variable `table` of 32 B, which the same instruction accesses"
        );
        let (.., note) = report(None, false, &[(0, 0xFFC), (1, 0x1004)]).expect("a fault");
        assert_eq!(
            note,
            "4 B before variable `table` of 32 B, which the same instruction accesses"
        );
    }

    #[test]
    fn one_that_accesses_one_variable_has_none_whatever_its_constant_is_in() {
        assert_eq!(report(Some(0), true, &[]), None);
        assert_eq!(report(Some(0), false, &[(0, 0x1020), (1, 0x103C)]), None);
        assert_eq!(report(None, false, &[(0, 0x1800)]), None, "a variable without a name");
    }

    #[test]
    fn one_that_leaves_the_code_object_has_an_index_beyond_some_variable() {
        let (_, address, _, note) = report(Some(0), false, &[(0, 0x1020), (0, 0x9000)]).expect("a fault");
        assert_eq!(
            (address, note.contains("past the end of variable `next`")),
            (0x9000, true),
            "{note}"
        );
        let (.., note) = report(None, false, &[(0, 0x9000)]).expect("a fault");
        assert!(note.contains("out of the code object"), "{note}");
    }
}
