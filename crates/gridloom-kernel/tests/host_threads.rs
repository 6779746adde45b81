//! What threads of the host own stays theirs, whichever thread of a launch the caller acts as.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;

use gridloom_kernel::host::{self, Memory, ThreadPosition};
use gridloom_kernel::{Out, block, thread};

/// The thread `index` of a launch of one block of `threads`.
fn place(index: u32, threads: u32) -> ThreadPosition {
    ThreadPosition { block: [0; 3], thread: [index, 0, 0], block_size: [threads, 1, 1], grid_size: [1; 3] }
}

/// Calls `act` and returns the message of its panic.
fn refusal(act: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(act)).expect_err("the call is refused");
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned())).expect("a message")
}

#[test]
fn an_out_is_the_elements_of_the_thread_that_asked_for_it() {
    let mut elements = [0, 10];
    let memory = Memory::new(&mut elements);
    let outs: Vec<Out<u32>> = (0..2).map(|index| host::as_thread(place(index, 2), || memory.out())).collect();
    // Both are used as one thread: outside of a launch, and inside as the first.
    let owned: Vec<(usize, &mut u32)> =
        outs.into_iter().filter_map(|out| host::as_thread(place(0, 2), || out.mine())).collect();
    assert_eq!(owned, [(0, &mut 0), (1, &mut 10)]);
}

#[test]
fn chunks_rows_and_planes_are_those_of_the_thread_that_asked() {
    macro_rules! each_once {
        ($out:ident => $elements:expr) => {{
            let mut elements = [0u32; 8];
            let memory = Memory::new(&mut elements);
            let outs: Vec<Out<u32>> =
                (0..2).map(|index| host::as_thread(place(index, 2), || memory.out())).collect();
            for $out in outs {
                $elements;
            }
            drop(memory);
            assert!(
                elements.iter().all(|&times| times <= 1) && elements.iter().sum::<u32>() >= 2,
                "{elements:?}"
            );
        }};
    }
    each_once!(out => out.chunk(3).into_iter().flatten().for_each(|element| *element += 1));
    each_once!(out => out.mine_2d(2).into_iter().for_each(|(_, element)| *element += 1));
    each_once!(out => out.mine_3d(2, 1).into_iter().for_each(|(_, element)| *element += 1));
    each_once!(out => out.each_mine_2d(2, 3).for_each(|(_, element)| *element += 1));
    each_once!(out => out.own().into_iter().for_each(|mut own| {
        let index = (0..2).find(|&index| catch_unwind(AssertUnwindSafe(|| own[index])).is_ok()).expect("one");
        own[index] += 1;
    }));
    each_once!(out => out.tile(4).into_iter().for_each(|mut tile| {
        tile.each_mine().for_each(|(_, element)| *element += 1);
    }));
}

#[test]
fn memory_of_a_block_is_divided_by_the_thread_that_asked_for_it() {
    host::run_blocks(1, 4, || {
        let mut tile = block::shared::<u32, 4>(0);
        let own = thread::rank();
        for other in 0..4 {
            *host::as_thread(place(other, 4), || tile.mine()).expect("an element") += 1;
        }
        host::run(1, 4, || {
            let indices: Vec<usize> = tile.each_mine().map(|(index, _)| index).collect();
            assert_eq!(indices, [own]);
        });
        assert_eq!(*block::sync(tile), [4; 4]);
    });
}

#[test]
fn a_thread_of_a_block_does_not_ask_for_its_memory_as_another() {
    let text = refusal(|| {
        host::run_blocks(1, 2, || {
            drop(host::as_thread(place(1, 2), || block::shared::<u32, 2>(0)));
        });
    });
    assert!(text.contains("acts as another thread"), "{text}");
}

#[test]
fn a_thread_does_not_come_to_a_barrier_as_another() {
    let text = refusal(|| {
        host::run_blocks(1, 2, || {
            let tile = block::shared::<u32, 2>(0);
            drop(host::as_thread(ThreadPosition::ONLY, || block::sync(tile)));
        });
    });
    assert!(text.contains("another thread"), "{text}");
}

#[test]
fn a_part_of_a_block_does_not_become_that_of_an_only_thread() {
    let mut elements = [0u32; 2];
    let memory = Memory::new(&mut elements);
    let tile = host::as_thread(place(0, 2), || memory.out().tile(2)).expect("a tile");
    // The other thread of the block may write its element at the same time.
    let text = refusal(|| drop(block::sync(tile)));
    assert!(text.contains("another thread"), "{text}");
}

#[test]
fn a_barrier_tells_memory_from_empty_memory_at_the_same_place() {
    let mut elements = [0u32; 2];
    let (empty, all) = elements.split_at_mut(0);
    let (empty, all) = (Memory::new(empty), Memory::new(all));
    let text = refusal(|| {
        host::run_blocks(1, 2, || {
            let mut tile = all.out().tile(2).expect("a tile");
            let nothing = empty.out().tile(0).expect("nothing");
            if thread::rank() == 0 {
                let _: u32 = block::sync(tile).iter().sum();
            } else {
                drop(block::sync(nothing));
                *tile.mine().expect("an element") += 1;
            }
        });
    });
    assert!(text.contains("different memory"), "{text}");
}

#[test]
fn pairs_tell_memory_from_empty_memory_at_the_same_place() {
    let mut elements = [0u32; 2];
    let (empty, all) = elements.split_at_mut(0);
    let (empty, all) = (Memory::new(empty), Memory::new(all));
    let text = refusal(|| {
        host::run_blocks(1, 2, || {
            let mut tile = all.out().tile(2).expect("a tile");
            let mut nothing = empty.out().tile(0).expect("nothing").pairs();
            if thread::rank() == 0 {
                tile.pairs().exchange(1, |_, a, b| (b, a));
            } else {
                nothing.exchange(1, |_, a, b| (b, a));
                *tile.mine().expect("an element") += 1;
            }
        });
    });
    assert!(text.contains("different memory"), "{text}");
}

#[test]
fn threads_that_no_launch_has_do_not_run() {
    let beyond = [
        ThreadPosition { thread: [2, 0, 0], ..place(0, 2) },
        ThreadPosition { block: [0, 1, 0], ..place(0, 2) },
        ThreadPosition { block_size: [0, 1, 1], ..place(0, 2) },
        ThreadPosition { grid_size: [u32::MAX; 3], ..place(0, 2) },
    ];
    for place in beyond {
        let text = refusal(|| host::as_thread(place, || ()));
        assert!(text.contains("no such thread"), "{text}");
    }
    assert_eq!(host::position(), ThreadPosition::ONLY);
}

/// Different threads of the host take different places of one launch.
#[test]
fn threads_of_the_host_write_their_parts_of_one_memory() {
    let mut elements = [0u32; 4];
    let memory = Memory::new(&mut elements);
    let start = Barrier::new(4);
    std::thread::scope(|scope| {
        for index in 0..4 {
            let (memory, start) = (&memory, &start);
            scope.spawn(move || {
                let out = host::as_thread(place(index, 4), || memory.out());
                start.wait();
                if let Some((_, element)) = out.mine() {
                    *element += 1;
                }
            });
        }
    });
    drop(memory);
    assert_eq!(elements, [1; 4]);
}
