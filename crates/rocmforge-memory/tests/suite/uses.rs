//! Order of uses: the earlier uses that a new one must wait for.

use crate::common::device::Stream;
use rocmforge_memory::{Access, Use, Uses};

fn ids(uses: &Uses<Stream>, access: Access, stream: &Stream) -> Vec<(u64, u64)> {
    use rocmforge_memory::Queue;
    let mut found: Vec<_> = uses
        .before(access, stream)
        .map(|last| (last.stream.id(), last.cursor))
        .collect();
    found.sort_unstable();
    found
}

#[test]
fn reads_wait_for_the_write_and_a_write_for_all_reads() {
    let [writer, one, two] = [1, 2, 3].map(Stream::new);
    let mut uses = Uses::default();
    assert!(uses.is_done() && uses.is_free_for(&one));
    uses.note(Access::Write, &writer, 5);
    assert_eq!(ids(&uses, Access::Read, &one), [(1, 5)]);
    assert_eq!(ids(&uses, Access::Write, &writer), [], "its own work comes before it");
    assert!(uses.is_free_for(&writer) && !uses.is_free_for(&one));
    uses.note(Access::Read, &one, 7);
    uses.note(Access::Read, &two, 9);
    uses.note(Access::Read, &one, 8);
    assert_eq!(ids(&uses, Access::Read, &two), [(1, 5)], "reads do not wait for reads");
    assert_eq!(ids(&uses, Access::Write, &two), [(1, 5), (2, 8)]);
    assert_eq!(ids(&uses, Access::Write, &writer), [(2, 8), (3, 9)]);
    // The write waited for them, so whoever waits for it waits for them.
    uses.note(Access::Write, &two, 10);
    assert_eq!(ids(&uses, Access::Write, &one), [(3, 10)]);
    uses.note(Access::Write, &two, 12);
    assert_eq!(ids(&uses, Access::Read, &one), [(3, 12)]);
}

#[test]
fn what_is_done_is_waited_for_by_nobody() {
    let [one, two, three] = [1, 2, 3].map(Stream::new);
    let mut uses = Uses::default();
    let write = one.enqueue();
    uses.note(Access::Write, &one, write);
    let read = two.enqueue();
    uses.note(Access::Read, &two, read);
    one.complete();
    assert_eq!(ids(&uses, Access::Read, &three), []);
    assert_eq!(ids(&uses, Access::Write, &three), [(2, 1)]);
    assert_eq!(uses.pending().count(), 1);
    assert!(!uses.is_done() && uses.is_free_for(&two) && !uses.is_free_for(&one));
    two.complete();
    assert!(uses.is_done() && uses.is_free_for(&three));
    let later = Use {
        stream: two.clone(),
        cursor: 2,
    };
    assert!(!later.is_done());
    assert_eq!(format!("{later:?}"), "operation 2 of stream 2");
    two.enqueue();
    two.complete();
    assert!(later.is_done());
}

#[test]
fn a_shared_stream_is_the_stream() {
    use rocmforge_memory::Queue;
    let stream = std::sync::Arc::new(Stream::new(17));
    for _ in 0..3 {
        stream.enqueue();
    }
    assert_eq!((Queue::id(&stream), Queue::completed(&stream)), (17, 0));
    stream.complete();
    assert_eq!(Queue::completed(&stream), 3);
}

#[test]
fn a_use_noted_late_does_not_hide_a_later_one() {
    let stream = Stream::new(1);
    let mut uses = Uses::default();
    uses.note(Access::Read, &stream, 1006);
    uses.note(Access::Read, &stream, 1005);
    let pending: Vec<u64> = uses.pending().map(|last| last.cursor).collect();
    assert_eq!(pending, [1006]);
}

#[test]
fn reads_that_are_done_are_forgotten() {
    let mut uses = Uses::default();
    for id in 0..1000 {
        let stream = Stream::new(id);
        uses.note(Access::Read, &stream, stream.enqueue());
        stream.complete();
    }
    let text = format!("{uses:?}");
    assert!(
        text.starts_with("Uses { write: None, reads: [operation 1 of stream"),
        "{text}"
    );
    assert!(text.len() < 200, "{text}");
}
