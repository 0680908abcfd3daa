//! Variables of a code object, and the record of which of them each instruction has accessed.
//!
//! The address of a variable is a constant in the code, and an index is added to it. The code does not show which variable was meant: clang
//! makes `table[c - 8]`, with `c` from 8 on, an index `c` to the address 32 B before `table`, where another variable may be. But it is a
//! single one. An instruction that accesses a variable, and also memory that is no part of it, therefore has an index beyond a variable,
//! also if different lanes or workgroups did so. The same is true of one that accesses memory outside of the code object. Both are known when
//! the launch has ended; the accesses themselves are made, since the memory is there.

use crate::calls::Calls;
use crate::fault::{Access, Fault, FaultKind};
use std::collections::BTreeMap;
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
pub(crate) struct VariableInstruction {
    pub(crate) how: Access,
    /// Bytes a lane accesses.
    pub(crate) size: u32,
    /// ELF address of the instruction.
    pub(crate) pc: u64,
    /// Number of the variable that the constant in the code is an address in, if there is one.
    pub(crate) base: Option<usize>,
}

/// The variables of a code object, and the instructions with the address of one.
#[derive(Clone, Debug)]
pub(crate) struct Variables {
    /// By their addresses.
    pub(crate) all: Vec<Variable>,
    /// Device addresses of the code object.
    pub(crate) object: Range<u64>,
    pub(crate) instructions: Vec<VariableInstruction>,
}

impl Variables {
    /// Those given, in any order. Of variables that overlap it makes one.
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
            instructions: Vec::new(),
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

    /// The faults of a launch with these accesses.
    pub(crate) fn faults(&self, accesses: &VariableAccesses) -> Vec<Fault> {
        let mut numbers: Vec<u32> = accesses.places.keys().map(|&(number, _)| number).collect();
        numbers.dedup();
        let faults = numbers.into_iter().filter_map(|number| self.fault(number, accesses));
        faults.collect()
    }

    /// The fault of an instruction, by its number.
    fn fault(&self, number: u32, accesses: &VariableAccesses) -> Option<Fault> {
        let instruction = self.instructions.get(number as usize)?;
        let places = accesses
            .places
            .range((number, Place::Variable(0))..=(number, Place::Elsewhere));
        let mut places: Vec<(Place, AccessRecord)> = places.map(|(&(_, place), &record)| (place, record)).collect();
        if let (Some(base), Some(record)) = (instruction.base, accesses.of_base(number)) {
            places.insert(0, (Place::Variable(base), record));
        }
        // The variable that most lanes have accessed is more likely the one that was meant.
        let variables = places.iter().filter(|(place, _)| matches!(place, Place::Variable(_)));
        let intended = variables
            .rev()
            .max_by_key(|(_, record)| record.count)
            .map(|(place, _)| *place);
        let wrong = places.iter().filter(|(place, _)| match intended {
            Some(intended) => *place != intended,
            None => *place == Place::Elsewhere,
        });
        let record = wrong.map(|(_, record)| *record).reduce(AccessRecord::and)?;
        let note = match intended {
            Some(Place::Variable(number)) => self.wording(&self.all[number], record.address),
            _ => "an index is added to the address of a variable, and leads out of the code object".to_owned(),
        };
        Some(Fault {
            kind: FaultKind::GlobalOutOfBounds,
            access: instruction.how,
            address: record.address,
            size: instruction.size,
            pc: instruction.pc,
            frames: Vec::new(),
            workgroup: record.workgroup,
            wave: record.wave,
            lane: record.lane,
            count: record.count,
            other: None,
            note,
            calls: Calls::NONE,
        })
    }

    /// What is wrong with an access to an address by an instruction that also accesses a variable.
    fn wording(&self, Variable { addresses, name }: &Variable, address: u64) -> String {
        let distance = match address.checked_sub(addresses.end) {
            Some(behind) => format!("{behind} B past the end of"),
            None if address < addresses.start => format!("{} B before", addresses.start - address),
            None => "over the end of".to_owned(),
        };
        let place = match self.place(address) {
            Place::Variable(number) if self.all[number].name != *name => {
                format!("in variable `{}`, ", self.all[number].name)
            }
            _ => String::new(),
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

/// An access by a lane, and how many lanes it stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AccessRecord {
    pub(crate) workgroup: [u32; 3],
    pub(crate) wave: u32,
    pub(crate) lane: u32,
    /// Device address of its first byte.
    pub(crate) address: u64,
    pub(crate) count: u64,
}

impl AccessRecord {
    /// One that stands for both. It does not depend on which workgroup or wave ran first; the accesses of a wave come in their order.
    fn and(self, other: Self) -> Self {
        let key = |record: &Self| {
            let [x, y, z] = record.workgroup;
            [z, y, x, record.wave]
        };
        let first = if key(&other) < key(&self) { other } else { self };
        Self {
            count: self.count + other.count,
            ..first
        }
    }
}

/// What instructions with the address of a variable have accessed in some workgroups of a launch.
#[derive(Default)]
pub(crate) struct VariableAccesses {
    /// By the number of the instruction: accesses of the variable that its constant is an address in.
    base: Vec<Option<AccessRecord>>,
    /// By that number and place: all other accesses.
    places: BTreeMap<(u32, Place), AccessRecord>,
}

impl VariableAccesses {
    fn of_base(&self, number: u32) -> Option<AccessRecord> {
        *self.base.get(number as usize)?
    }

    /// Notes that an instruction has accessed the variable that its constant is an address in.
    pub(crate) fn note_base(&mut self, number: u32, record: AccessRecord) {
        let all = self.base.len().max(number as usize + 1);
        self.base.resize(all, None);
        let held = &mut self.base[number as usize];
        *held = Some(held.map_or(record, |held| held.and(record)));
    }

    /// Notes another access, of one byte and `more`.
    pub(crate) fn note(&mut self, number: u32, variables: &Variables, more: u64, record: AccessRecord) {
        let [first, last] = [0, more].map(|byte| variables.place(record.address.wrapping_add(byte)));
        self.put((number, first), record);
        if last != first {
            self.put((number, last), record);
        }
    }

    fn put(&mut self, at: (u32, Place), record: AccessRecord) {
        let held = self.places.entry(at).or_insert(AccessRecord { count: 0, ..record });
        *held = held.and(record);
    }

    /// Adds what other workgroups have accessed.
    pub(crate) fn add(&mut self, other: Self) {
        for (number, record) in (0..).zip(other.base) {
            if let Some(record) = record {
                self.note_base(number, record);
            }
        }
        other.places.into_iter().for_each(|(at, record)| self.put(at, record));
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

    /// A code object with two variables, and an instruction whose constant is in the variable of this number.
    fn variables(base: Option<usize>) -> Variables {
        let all = vec![variable(NEXT, "next"), variable(TABLE, "table")];
        let mut variables = Variables::new(all, 0..0x2000);
        variables.instructions.push(VariableInstruction {
            how: Access::Load,
            size: 8,
            pc: 0x1800,
            base,
        });
        variables
    }

    fn access(group: u32, address: u64, count: u64) -> AccessRecord {
        AccessRecord {
            workgroup: [group, 0, 0],
            wave: 0,
            lane: 3,
            address,
            count,
        }
    }

    /// What is reported of accesses to the first variable by so many lanes, and to other addresses by workgroups: workgroup, address,
    /// lanes, and the note.
    fn report(base: Option<usize>, lanes: u64, others: &[(u32, u64)]) -> Option<(u32, u64, u64, String)> {
        let variables = variables(base);
        let parts = |order: &mut dyn Iterator<Item = &(u32, u64)>| {
            let mut all = VariableAccesses::default();
            for &(group, address) in order {
                let mut part = VariableAccesses::default();
                part.note(0, &variables, 7, access(group, address, 1));
                all.add(part);
            }
            if lanes != 0 {
                all.note_base(0, access(0, 0x1000, lanes));
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
        let found = [0xFFF, 0x1000, 0x101F, 0x1020, 0x1040].map(|at| variables.at(at));
        assert_eq!(found, [None, Some(0), Some(0), Some(1), None]);
    }

    #[test]
    fn an_instruction_that_accesses_two_variables_has_an_index_beyond_one() {
        let found = report(Some(0), 9, &[(2, 0x1024), (1, 0x1028), (3, 0x1020)]);
        let note =
            "in variable `next`, 8 B past the end of variable `table` of 32 B, which the same instruction accesses";
        assert_eq!(found, Some((1, 0x1028, 3, note.to_owned())));
        // Most lanes have accessed the other one.
        let found = report(Some(0), 2, &[(2, 0x1024), (1, 0x1028), (3, 0x1020)]);
        let note = "in variable `table`, 32 B before variable `next` of 32 B, which the same instruction accesses";
        assert_eq!(found, Some((0, 0x1000, 2, note.to_owned())));
        let (.., note) = report(None, 0, &[(0, 0xFF0), (1, 0x1004)]).expect("a fault");
        assert_eq!(
            note,
            "16 B before variable `table` of 32 B, which the same instruction accesses"
        );
    }

    #[test]
    fn an_access_over_the_end_of_a_variable_has_one() {
        let (_, address, _, note) = report(Some(1), 0, &[(0, 0x103C)]).expect("a fault");
        assert_eq!(address, 0x103C);
        assert_eq!(
            note,
            "over the end of variable `next` of 32 B, which the same instruction accesses"
        );
    }

    #[test]
    fn one_that_accesses_one_variable_has_none_whatever_its_constant_is_in() {
        assert_eq!(report(Some(0), 5, &[]), None);
        assert_eq!(report(Some(0), 0, &[(0, 0x1020), (1, 0x1038)]), None);
        assert_eq!(report(None, 0, &[(0, 0x1800)]), None, "a variable without a name");
    }

    #[test]
    fn one_that_leaves_the_code_object_has_an_index_beyond_some_variable() {
        let (_, address, _, note) = report(Some(0), 0, &[(0, 0x1020), (0, 0x9000)]).expect("a fault");
        assert_eq!(address, 0x9000);
        assert!(note.contains("past the end of variable `next`"), "{note}");
        let (.., note) = report(None, 0, &[(0, 0x9000)]).expect("a fault");
        assert!(note.contains("out of the code object"), "{note}");
    }
}
