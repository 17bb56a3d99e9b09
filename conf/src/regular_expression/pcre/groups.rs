//! The groups of an expression while it is rewritten: which there are, which are open, and what each has become.
//!
//! A call of a group (`(?1)`) is that text once more, capturing nothing, so that the group keeps what it captured itself.
//! Only groups that are closed can be called: one that calls itself would have no end.

/// Longest result in bytes: calls of groups that call others double it each time.
const MOST: usize = 256 << 10;

#[derive(Debug)]
struct Group {
    name: Option<String>,
    /// Where its text begins; if it is closed, also where it ends.
    start: usize,
    end: Option<usize>,
}

#[derive(Debug, Default)]
pub(super) struct Groups {
    groups: Vec<Group>,
    /// Open parentheses; `None` for those that capture nothing.
    open: Vec<Option<usize>>,
    /// Where a capturing parenthesis was written, and its length with its name.
    captures: Vec<(usize, usize)>,
}

impl Groups {
    pub(super) fn open(&mut self) {
        self.open.push(None);
    }

    /// Its parenthesis is already written.
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

    pub(super) fn close(&mut self, out: &mut String) {
        out.push(')');
        if let Some(Some(group)) = self.open.pop() {
            self.groups[group].end = Some(out.len());
        }
    }

    pub(super) fn count(&self) -> usize {
        self.groups.len()
    }

    /// Of `1`, `-1` or `+1` here; `None` for a name.
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

    pub(super) fn call(&self, target: &str, out: &mut String) -> Result<(), String> {
        let group = match self.number(target) {
            Some(0) => return Err("recursion is not supported".into()),
            Some(number) => self.groups.get(number as usize - 1),
            None => self.groups.iter().find(|group| group.name.as_deref() == Some(target)),
        };
        let Some(group) = group else {
            return Err(format!("a call of group \"{target}\", which does not precede it, is not supported"));
        };
        let Some(end) = group.end else { return Err("recursion is not supported".into()) };
        if out.len() + (end - group.start) > MOST {
            return Err("it is too large, including the groups that it calls".into());
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
