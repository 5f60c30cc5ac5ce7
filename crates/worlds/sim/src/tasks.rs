//! Tasks of virtual time: async functions, each of which runs until it waits and continues when what it waits for is
//! there. A task may call another one, which then runs first.

use crate::error::{Error, Result};
use stackline_core::time::Instant;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// A running async function. Its error ends the run.
pub(crate) type Task = Pin<Box<dyn Future<Output = Result<()>>>>;

/// A function that is called once all tasks wait, before time advances.
pub(crate) type Notice = Box<dyn FnOnce()>;

struct TaskSlot {
    /// The function; `None` while it is being polled, and when it is over.
    task: Option<Task>,
    /// The task was woken while it was being polled: it is polled again.
    is_called: bool,
    is_over: bool,
    /// The earliest timer of the task that has not expired.
    alarm: Option<Instant>,
}

impl TaskSlot {
    const fn new(task: Task) -> Self {
        Self {
            task: Some(task),
            is_called: false,
            is_over: false,
            alarm: None,
        }
    }
}

/// All tasks of a run, by number.
#[derive(Default)]
pub(crate) struct Tasks {
    slots: RefCell<Vec<TaskSlot>>,
    /// The numbers of tasks that are over, for new tasks.
    free: RefCell<Vec<u32>>,
    /// The numbers of the tasks to poll, in order.
    ready: RefCell<Vec<u32>>,
    notices: RefCell<VecDeque<Notice>>,
    /// The number of the task that is being polled.
    running: Cell<u32>,
    /// The first error of a task.
    failure: RefCell<Option<Error>>,
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks")
            .field("ready", &self.ready)
            .field("running", &self.running)
            .finish_non_exhaustive()
    }
}

impl Tasks {
    /// Adds a task, without running it. Returns its number: tasks are numbered in order.
    pub(crate) fn push(&self, task: Task) -> u32 {
        let mut slots = self.slots.borrow_mut();
        slots.push(TaskSlot::new(task));
        slots.len() as u32 - 1
    }

    /// Adds a task with any free number, and runs it until it waits.
    pub(crate) fn spawn(&self, task: Task) {
        let free = self.free.borrow_mut().pop();
        let number = match free {
            Some(number) => {
                self.slots.borrow_mut()[number as usize] = TaskSlot::new(task);
                number
            }
            None => self.push(task),
        };
        self.resume(number);
    }

    /// Drops all tasks.
    pub(crate) fn clear(&self) {
        // Tasks that are dropped may notify each other, so the list must not be borrowed meanwhile.
        drop(mem::take(&mut *self.slots.borrow_mut()));
    }

    /// The task that is being polled.
    pub(crate) const fn running(&self) -> u32 {
        self.running.get()
    }

    /// Puts a task on the list of tasks to poll.
    pub(crate) fn wake(&self, number: u32) {
        self.ready.borrow_mut().push(number);
    }

    /// Polls a task now. A task that is being polled already is polled again afterwards.
    #[inline]
    pub(crate) fn resume(&self, number: u32) {
        let Some(mut task) = self.take(number) else {
            return;
        };
        let before = self.running.replace(number);
        let polled = task.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        self.running.set(before);
        match polled {
            Poll::Pending => self.put_back(number, task),
            Poll::Ready(result) => self.end(number, result),
        }
    }

    /// Takes a task that waits, to poll it.
    #[inline]
    fn take(&self, number: u32) -> Option<Task> {
        let mut slots = self.slots.borrow_mut();
        let slot = slots.get_mut(number as usize)?;
        let task = slot.task.take();
        slot.is_called |= task.is_none();
        task
    }

    #[inline]
    fn put_back(&self, number: u32, task: Task) {
        if let Some(slot) = self.slots.borrow_mut().get_mut(number as usize) {
            slot.task = Some(task);
            if mem::take(&mut slot.is_called) {
                self.wake(number);
            }
        }
    }

    #[cold]
    fn end(&self, number: u32, result: Result<()>) {
        if let Some(slot) = self.slots.borrow_mut().get_mut(number as usize) {
            slot.is_over = true;
        }
        self.free.borrow_mut().push(number);
        if let Err(error) = result {
            self.failure.borrow_mut().get_or_insert(error);
        }
    }

    /// Swaps the list of tasks to poll with an empty list.
    pub(crate) fn take_ready(&self, into: &mut Vec<u32>) {
        mem::swap(&mut *self.ready.borrow_mut(), into);
    }

    /// Whether no task has to be polled.
    pub(crate) fn is_idle(&self) -> bool {
        self.ready.borrow().is_empty()
    }

    /// Whether a task is over.
    pub(crate) fn is_over(&self, number: u32) -> bool {
        let slots = self.slots.borrow();
        let slot = slots.get(number as usize);
        slot.is_none_or(|slot| slot.is_over)
    }

    pub(crate) fn take_failure(&self) -> Option<Error> {
        self.failure.borrow_mut().take()
    }

    /// Whether a timer at that moment is earlier than the task's other timers and therefore has to be set.
    pub(crate) fn wants_alarm(&self, number: u32, moment: Instant) -> bool {
        let mut slots = self.slots.borrow_mut();
        let Some(slot) = slots.get_mut(number as usize) else {
            return false;
        };
        let is_earlier = slot.alarm.is_none_or(|earlier| moment < earlier);
        if is_earlier {
            slot.alarm = Some(moment);
        }
        is_earlier
    }

    /// Handles a timer of the task that has expired: the task is polled.
    pub(crate) fn ring(&self, number: u32, at: Instant) {
        if let Some(slot) = self.slots.borrow_mut().get_mut(number as usize)
            && slot.alarm == Some(at)
        {
            slot.alarm = None;
        }
        self.wake(number);
    }

    /// Has a function called once all tasks wait.
    pub(crate) fn notify(&self, notice: Notice) {
        self.notices.borrow_mut().push_back(notice);
    }

    pub(crate) fn take_notice(&self) -> Option<Notice> {
        self.notices.borrow_mut().pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::rc::Rc;

    /// A task that waits so many times, and writes down each time that it runs.
    fn counting(name: char, waits: usize, log: &Rc<RefCell<String>>) -> Task {
        let (log, mut left) = (Rc::clone(log), waits);
        Box::pin(async move {
            poll_fn(|_| {
                log.borrow_mut().push(name);
                if left == 0 {
                    return Poll::Ready(());
                }
                left -= 1;
                Poll::Pending
            })
            .await;
            Ok(())
        })
    }

    #[test]
    fn a_task_runs_until_it_waits_and_its_number_is_taken_again() {
        let (tasks, log) = (Tasks::default(), Rc::default());
        tasks.spawn(counting('a', 1, &log));
        tasks.spawn(counting('b', 0, &log));
        tasks.spawn(counting('c', 1, &log));
        tasks.resume(0);
        tasks.resume(1);
        tasks.resume(1);
        assert_eq!(
            (log.borrow().as_str(), tasks.slots.borrow().len()),
            ("abcac", 2)
        );
    }

    #[test]
    fn a_task_that_calls_itself_is_polled_again_and_an_error_is_kept() {
        let tasks = Rc::new(Tasks::default());
        let own = Rc::clone(&tasks);
        let mut is_first = true;
        tasks.spawn(Box::pin(async move {
            poll_fn(|_| {
                own.resume(0);
                if mem::take(&mut is_first) {
                    Poll::Pending
                } else {
                    Poll::Ready(())
                }
            })
            .await;
            Err(Error::measurement("over"))
        }));
        let mut ready = Vec::new();
        tasks.take_ready(&mut ready);
        assert_eq!(ready, [0]);
        tasks.resume(0);
        assert_eq!(tasks.take_failure().unwrap().message, "over");
    }
}
