//! The groups of an expression while it is rewritten: which there are, which are open, and what each has become.
//!
//! A call of a group (`(?1)`) is that text once more, capturing nothing, so that the group keeps what it captured itself.
//! Only groups that are closed can be called: one that calls itself would have no end.

/// The longest that an expression may become: calls of groups that call others double it each time.
const MOST: usize = 256 << 10;

/// A group that captures.
#[derive(Debug)]
struct Group {
    name: Option<String>,
    /// Where its text begins in what was written; for one that is closed also where it ends.
    start: usize,
    end: Option<usize>,
}

/// The groups so far.
#[derive(Debug, Default)]
pub(super) struct Groups {
    groups: Vec<Group>,
    /// Parentheses that are open; `None` for those that capture nothing.
    open: Vec<Option<usize>>,
    /// Where a parenthesis that captures was written, and how long it is with its name.
    captures: Vec<(usize, usize)>,
}

impl Groups {
    /// A parenthesis that captures nothing.
    pub(super) fn open(&mut self) {
        self.open.push(None);
    }

    /// A group that captures, with its name; its parenthesis is written.
    pub(super) fn open_capture(&mut self, name: Option<&str>, out: &mut String) {
        let start = out.len();
        match name {
            Some(name) => out.extend(["(?<", name, ">"]),
            None => out.push('('),
        }
        self.captures.push((start, out.len() - start));
        self.open.push(Some(self.groups.len()));
        self.groups.push(Group { name: name.map(str::to_owned), start, end: None });
    }

    /// A closing parenthesis, which is written.
    pub(super) fn close(&mut self, out: &mut String) {
        out.push(')');
        if let Some(Some(group)) = self.open.pop() {
            self.groups[group].end = Some(out.len());
        }
    }

    /// Groups that were opened so far.
    pub(super) fn count(&self) -> usize {
        self.groups.len()
    }

    /// The number that `1`, `-1` or `+1` means here; `None` for a name.
    pub(super) fn number(&self, text: &str) -> Option<u32> {
        let digits = text.trim_start_matches(['+', '-']);
        let value: usize = digits.parse().ok().filter(|value| *value <= usize::from(u16::MAX))?;
        let number = match text.as_bytes().first() {
            Some(b'-') => (self.count() + 1).checked_sub(value)?,
            Some(b'+') => self.count() + value,
            _ => value,
        };
        u32::try_from(number).ok()
    }

    /// Writes a group's text once more.
    pub(super) fn call(&self, target: &str, out: &mut String) -> Result<(), String> {
        let group = match self.number(target) {
            Some(0) => return Err("recursion is not supported".into()),
            Some(number) => self.groups.get(number as usize - 1),
            None => self.groups.iter().find(|group| group.name.as_deref() == Some(target)),
        };
        let Some(group) = group else {
            return Err(format!(
                "a call of group \"{target}\", which does not come before it, is not supported"
            ));
        };
        let Some(end) = group.end else { return Err("recursion is not supported".into()) };
        if out.len() + (end - group.start) > MOST {
            return Err("it is too large with the groups that it calls".into());
        }
        let mut text = String::with_capacity(end - group.start);
        let mut from = group.start;
        for &(at, length) in self.captures.iter().filter(|(at, _)| (group.start..end).contains(at)) {
            text.push_str(&out[from..at]);
            text.push_str("(?:");
            from = at + length;
        }
        text.push_str(&out[from..end]);
        out.push_str(&text);
        Ok(())
    }
}
