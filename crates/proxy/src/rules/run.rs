//! Carries out rules in a conversation.

use core::fmt;
use core::time::Duration;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use worldwire_core::Side;
use worldwire_core::json::{Json, Object};
use worldwire_dissect::filter::{Filter, Subject};
use worldwire_dissect::{Families, Line};

use super::Current;
use super::evaluate::{Failure, Fields, MAX_VARIABLE_BYTES, Scope, size};
use super::program::{Injection, Origin, Program, Rule, Step, StepAction};
use super::syntax::Target;
use crate::desk::MAX_AGAIN;
use crate::handler::{Effects, FieldsReader, Handler, Next, Passing};
use crate::problem_rate::ProblemRate;

/// The rules of one conversation, and their state.
pub(super) struct RuleHandler {
    current: Arc<Current>,
    version: u64,
    program: Arc<Program>,
    memory: Memory,
    /// When the timers are due, in their order; empty before the first message.
    due: Vec<Duration>,
    conversation: Option<Conversation>,
    /// The rules that can apply to a message, by its name.
    candidates: HashMap<Box<str>, Arc<[Candidate]>>,
    /// The message being handled.
    pending: Pending,
}

/// The state that rules keep between messages.
#[derive(Default)]
struct Memory {
    variables: Vec<Option<Json>>,
    /// Filters with the values of variables, by rule. Emptied when a variable changes.
    bound: HashMap<usize, Filter>,
    problems: Vec<ProblemRate>,
    /// The rules whose filters were ambiguous.
    ambiguous: HashSet<usize>,
    reader: FieldsReader,
}

/// A rule whose filter can match messages of one name.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    rule: usize,
    /// Whether every message of that name matches.
    is_certain: bool,
}

/// Facts about the conversation, from its first message.
#[derive(Clone, Copy, Debug)]
struct Conversation {
    family: &'static str,
    codec: Option<&'static str>,
}

/// The effects of rules on the current message.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    /// The index of the next candidate.
    next: usize,
    changes: usize,
    /// The work that the rules have done so far, in steps.
    work: u64,
    delay: Option<Duration>,
    is_paused: bool,
}

/// The maximum work of all rules for one message, in steps of a few nanoseconds. Other conversations
/// wait meanwhile, and the clients determine the length of the texts that rules search.
const MAX_WORK: u64 = 1 << 27;
/// The part of the work for a message that does not depend on its length, as a number of bytes.
const LEAST_BYTES: u64 = 64;
/// The maximum number of message names whose candidates are cached.
const MAX_NAMES: usize = 1_024;

/// A block's effect on the message it ran for.
#[derive(Debug, Default)]
struct BlockOutcome {
    change: Option<Vec<u8>>,
    is_dropped: bool,
    delay: Option<Duration>,
    is_paused: bool,
}

impl RuleHandler {
    pub(super) fn new(current: Arc<Current>) -> Self {
        let version = current.version();
        let program = current.get();
        let memory = Memory {
            variables: program.variables.iter().map(|it| it.initial.clone()).collect(),
            problems: vec![ProblemRate::default(); program.places],
            ..Memory::default()
        };
        Self {
            current,
            version,
            program,
            memory,
            due: Vec::new(),
            conversation: None,
            candidates: HashMap::new(),
            pending: Pending::default(),
        }
    }

    /// Switches to rules that have changed.
    fn refresh(&mut self, now: Duration) {
        let version = self.current.version();
        if version == self.version {
            return;
        }
        self.version = version;
        let program = self.current.get();
        let before = core::mem::replace(&mut self.program, program);
        let mut values: HashMap<&str, Option<Json>> = HashMap::new();
        for (variable, value) in before.variables.iter().zip(&mut self.memory.variables) {
            values.insert(&variable.name, value.take());
        }
        let variables = self.program.variables.iter().map(|variable| {
            values.remove(&*variable.name).unwrap_or_else(|| variable.initial.clone())
        });
        self.memory.variables = variables.collect();
        self.memory.bound.clear();
        self.memory.ambiguous.clear();
        self.memory.problems = vec![ProblemRate::default(); self.program.places];
        self.candidates.clear();
        if self.conversation.is_some() {
            self.start_timers(now);
        }
    }

    fn start_timers(&mut self, now: Duration) {
        let timers = self.program.timers.iter();
        self.due = timers.map(|timer| now.saturating_add(timer.period)).collect();
    }

    /// Runs the `on connect` blocks, at the conversation's first message.
    fn begin(&mut self, passing: &Passing<'_>, effects: &mut Effects) {
        let codec = codec(passing, self.program.families);
        let conversation = Conversation { family: passing.item.family, codec };
        self.conversation = Some(conversation);
        self.start_timers(passing.now);
        let program = Arc::clone(&self.program);
        for block in &program.connect {
            let mut block_run = BlockRun {
                program: &program,
                memory: &mut self.memory,
                now: passing.now,
                fields: None,
                conversation,
            };
            block_run.run(block, effects);
        }
    }

    /// The rules that can apply to messages of this name.
    fn candidates(&mut self, family: &str, name: &str) -> Arc<[Candidate]> {
        if let Some(known) = self.candidates.get(name) {
            return Arc::clone(known);
        }
        let rules = self.program.rules.iter().enumerate();
        let found: Arc<[Candidate]> = rules
            .filter_map(|(rule, it)| match it.filter.matches_name(family, name) {
                Some(false) => None,
                outcome => Some(Candidate { rule, is_certain: outcome.is_some() }),
            })
            .collect();
        if self.candidates.len() < MAX_NAMES {
            self.candidates.insert(name.into(), Arc::clone(&found));
        }
        found
    }
}

impl Handler for RuleHandler {
    fn message(&mut self, passing: &Passing<'_>, effects: &mut Effects) -> Next {
        if self.pending.next == 0 {
            self.refresh(passing.now);
            if self.conversation.is_none() {
                self.begin(passing, effects);
            }
        }
        let candidates = self.candidates(passing.item.family, passing.name);
        let mut pending = core::mem::take(&mut self.pending);
        if passing.is_dropped {
            return Next::Done;
        }
        let Some(conversation) = self.conversation else { return Next::Done };
        let program = Arc::clone(&self.program);
        let bytes = passing.body.len() as u64 + LEAST_BYTES;
        while let Some(candidate) = candidates.get(pending.next) {
            pending.next += 1;
            let Some(rule) = program.rules.get(candidate.rule) else { continue };
            let [filter, block] = rule.work;
            let work = if candidate.is_certain { block } else { filter + block };
            pending.work = pending.work.saturating_add(work.saturating_mul(bytes));
            if pending.work > MAX_WORK {
                let length = passing.body.len();
                let failure =
                    format!("the rules require too much work for a message of {length} bytes");
                let problem = Problem { origin: &rule.origin, now: passing.now };
                let consequence = "this one and all later ones are skipped";
                self.memory.report(&program, problem, &failure, consequence, effects);
                break;
            }
            let is_match = candidate.is_certain
                || self.memory.matches(&program, (candidate.rule, rule), passing, effects);
            if !is_match {
                continue;
            }
            if pending.changes >= MAX_AGAIN {
                let failure = format!("more than {MAX_AGAIN} rules would change this message");
                let problem = Problem { origin: &rule.origin, now: passing.now };
                self.memory.report(&program, problem, &failure, "the rest are skipped", effects);
                break;
            }
            let mut block_run = BlockRun {
                program: &program,
                memory: &mut self.memory,
                now: passing.now,
                fields: Some(Fields::new(passing)),
                conversation,
            };
            let outcome = block_run.run(&rule.block, effects);
            if outcome.is_dropped {
                effects.discard();
                return Next::Done;
            }
            pending.delay = pending.delay.max(outcome.delay);
            pending.is_paused |= outcome.is_paused;
            if let Some(body) = outcome.change {
                effects.change(body);
                pending.changes += 1;
                self.pending = pending;
                return Next::Again;
            }
        }
        if pending.is_paused {
            effects.pause();
        } else if let Some(delay) = pending.delay {
            effects.delay_until(passing.now.saturating_add(delay));
        }
        Next::Done
    }

    fn timeout(&mut self, now: Duration, effects: &mut Effects) {
        self.refresh(now);
        let Some(conversation) = self.conversation else { return };
        let program = Arc::clone(&self.program);
        for (timer, due) in program.timers.iter().zip(&mut self.due) {
            if *due > now {
                continue;
            }
            // Missed runs are skipped.
            let next = due.saturating_add(timer.period);
            *due = if next > now { next } else { now.saturating_add(timer.period) };
            let mut block_run = BlockRun {
                program: &program,
                memory: &mut self.memory,
                now,
                fields: None,
                conversation,
            };
            block_run.run(&timer.block, effects);
        }
    }

    fn poll_timeout(&self) -> Option<Duration> {
        self.due.iter().min().copied()
    }
}

impl fmt::Debug for RuleHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuleHandler").field("file", &self.program.file).finish_non_exhaustive()
    }
}

/// The codec of the message, which distinguishes kinds of conversations.
fn codec(passing: &Passing<'_>, families: Families) -> Option<&'static str> {
    let line: Json = [
        ("family", Json::from(passing.item.family)),
        ("from", passing.item.from.name().into()),
        ("name", passing.name.into()),
        ("fields", Object::new().into()),
    ]
    .into_iter()
    .collect();
    let blob = Line::parse(&line).ok()??.blob(families);
    blob.ok()?.map(|(codec, _)| codec)
}

/// Where and when something went wrong.
#[derive(Clone, Copy)]
struct Problem<'o> {
    origin: &'o Origin,
    now: Duration,
}

impl Memory {
    fn matches(
        &mut self,
        program: &Program,
        (index, rule): (usize, &Rule),
        passing: &Passing<'_>,
        effects: &mut Effects,
    ) -> bool {
        let filter = if rule.is_bound {
            let variables = &self.variables;
            let value = |word: &str| {
                let known = program.variables.iter().position(|variable| variable.name == word)?;
                Some(variables.get(known).and_then(Option::as_ref))
            };
            &*self.bound.entry(index).or_insert_with(|| rule.filter.bind(&value))
        } else {
            &rule.filter
        };
        let subject = Subject::of(passing.item, passing.name, passing.tree());
        if filter.matches(&subject) {
            return true;
        }
        // An ambiguous path is reported once.
        if !self.ambiguous.contains(&index)
            && let Some(ambiguity) = filter.ambiguity().filter(|it| it.stream == subject.stream)
        {
            self.ambiguous.insert(index);
            let problem = Problem { origin: &rule.origin, now: passing.now };
            self.report(program, problem, &ambiguity.to_string(), "the rule is skipped", effects);
        }
        false
    }

    /// Reports a problem, unless its place reported one recently.
    fn report(
        &mut self,
        program: &Program,
        Problem { origin, now }: Problem<'_>,
        failure: &str,
        consequence: &str,
        effects: &mut Effects,
    ) {
        let Some(rate) = self.problems.get_mut(origin.number) else { return };
        let Some(more) = rate.admit(now) else { return };
        let Origin { line, text, .. } = origin;
        let mut report = format!("{}:{line}: `{text}`: {failure}", program.file);
        if !consequence.is_empty() {
            report.push_str("; ");
            report.push_str(consequence);
        }
        report.push_str(&more);
        effects.problem(report);
    }
}

/// Runs a block.
struct BlockRun<'r, 'f, 'p> {
    program: &'r Program,
    memory: &'r mut Memory,
    now: Duration,
    /// `None` if the block runs without a message.
    fields: Option<Fields<'f, 'p>>,
    conversation: Conversation,
}

const UNCHANGED: &str = "the message is forwarded unchanged";

impl<'f, 'p> BlockRun<'_, 'f, 'p> {
    fn run(&mut self, block: &[Step], effects: &mut Effects) -> BlockOutcome {
        let mut outcome = BlockOutcome::default();
        let mut last_set = None;
        // If one part of a change fails, the whole change is discarded.
        let mut is_void = false;
        for step in block {
            match self.step(step, &mut outcome, effects) {
                Ok(()) => {
                    if matches!(step.action, StepAction::Set { .. }) {
                        last_set = Some(step);
                    }
                }
                Err(failure) => {
                    let is_set = matches!(step.action, StepAction::Set { .. });
                    is_void |= is_set;
                    self.report(step, &failure, if is_set { UNCHANGED } else { "" }, effects);
                }
            }
        }
        if outcome.is_dropped || is_void {
            return outcome;
        }
        let encoded = self.fields.as_ref().and_then(|fields| {
            let changed = fields.encode_changed()?;
            Some((changed, fields.passing.body))
        });
        match (encoded, last_set) {
            (Some((Ok(body), before)), _) => outcome.change = (body != before).then_some(body),
            (Some((Err(error), _)), Some(step)) => {
                self.report(step, &error.to_string(), UNCHANGED, effects);
            }
            _ => {}
        }
        outcome
    }

    fn report(&mut self, step: &Step, failure: &str, consequence: &str, effects: &mut Effects) {
        let problem = Problem { origin: &step.origin, now: self.now };
        self.memory.report(self.program, problem, failure, consequence, effects);
    }

    fn step(
        &mut self,
        step: &Step,
        outcome: &mut BlockOutcome,
        effects: &mut Effects,
    ) -> Result<(), Failure> {
        match &step.action {
            StepAction::Drop => outcome.is_dropped = true,
            StepAction::Pause => outcome.is_paused = true,
            StepAction::Delay(time) => outcome.delay = outcome.delay.max(Some(*time)),
            StepAction::Count(index) => {
                if let Some(counter) = self.program.counters.get(*index) {
                    counter.count.fetch_add(1, Ordering::Relaxed);
                }
            }
            StepAction::Log(parts) => {
                let (text, failure) = self.scope().text(parts);
                effects.log(text);
                return failure.map_or(Ok(()), Err);
            }
            StepAction::Let { variable, value } => {
                let value = self.scope().value(value)?;
                if size(&value) > MAX_VARIABLE_BYTES {
                    return Err(format!("a variable can hold at most {MAX_VARIABLE_BYTES} bytes"));
                }
                if let Some(slot) = self.memory.variables.get_mut(*variable)
                    && slot.as_ref() != Some(&value)
                {
                    *slot = Some(value);
                    self.memory.bound.clear();
                }
            }
            StepAction::Set { path, value } => {
                let value = self.scope().value(value)?;
                let fields = self.fields.as_mut().ok_or("there is no message")?;
                fields.set(path, &value, &mut self.memory.reader)?;
            }
            StepAction::Inject(injection) => self.inject(injection, effects)?,
        }
        Ok(())
    }

    fn scope(&mut self) -> Scope<'_, 'f, 'p> {
        Scope {
            program: self.program,
            variables: &self.memory.variables,
            fields: self.fields.as_mut(),
            reader: &mut self.memory.reader,
        }
    }

    fn inject(&mut self, injection: &Injection, effects: &mut Effects) -> Result<(), Failure> {
        let Conversation { family, codec } = self.conversation;
        // Blocks without a message run in all conversations, and this message belongs to others.
        let is_other = injection.family != family
            || injection.codec.zip(codec).is_some_and(|(own, theirs)| own != theirs);
        if self.fields.is_none() && is_other {
            return Ok(());
        }
        let from = self.fields.as_ref().map(|fields| fields.passing.item.from);
        let to = match (injection.to, from) {
            (Target::Client, _) => Side::Client,
            (Target::Server, _) => Side::Server,
            (Target::Back, Some(from)) => from,
            (Target::Back, None) => return Err("there is no message to reply to".to_owned()),
        };
        let fields = self.scope().value(&injection.fields)?;
        effects.add_from_rule(to, &injection.name, fields, &injection.origin);
        Ok(())
    }
}
