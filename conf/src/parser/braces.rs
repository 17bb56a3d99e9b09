//! Which brace is missing or too many, judged by the indentation.
//!
//! Counting alone blames the outermost block, or the end of the file, whichever brace was forgotten. People indent,
//! so where counting does not come out even, a second pass takes a line that stands no deeper than the block around
//! it as that block's end. It must never touch a file whose braces are even: indentation means nothing to nginx.

use super::indentation;
use crate::lexer::Token;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repair {
    /// The `}` at this index closes nothing.
    Extra { at: usize },
    /// Before the token at this index (or the end, past the last) the innermost block ends without its `}`.
    Unclosed { at: usize },
}

impl Repair {
    pub(super) fn at(self) -> usize {
        match self {
            Repair::Extra { at } | Repair::Unclosed { at } => at,
        }
    }
}

/// In order of their tokens; empty if the braces are balanced.
pub(super) fn repairs(tokens: &[Token], text: &[u8]) -> Vec<Repair> {
    let counted = by_counting(tokens);
    if counted.is_empty() {
        return counted;
    }
    // More repairs than counting needs would mean that the file is not indented as blocks are.
    match by_indentation(tokens, text, counted.len()) {
        Some(repairs) if !repairs.is_empty() => repairs,
        _ => counted,
    }
}

fn by_counting(tokens: &[Token]) -> Vec<Repair> {
    let mut repairs = Vec::new();
    let mut open = 0usize;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Open(_) => open += 1,
            Token::Close(_) if open == 0 => repairs.push(Repair::Extra { at }),
            Token::Close(_) => open -= 1,
            Token::Word(_) | Token::Semicolon(_) => {}
        }
    }
    repairs.extend(std::iter::repeat_n(Repair::Unclosed { at: tokens.len() }, open));
    repairs
}

/// `None` if it would take more than `most` repairs.
fn by_indentation(tokens: &[Token], text: &[u8], most: usize) -> Option<Vec<Repair>> {
    let mut repairs = Vec::new();
    // For each open block the column of its directive, where that is the first on its line.
    let mut blocks: Vec<Option<usize>> = Vec::new();
    let mut name: Option<&Token> = None;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Word(_) if name.is_none() => {
                name = Some(token);
                let column = indentation(text, token.span().start);
                if matches!(at.checked_sub(1).map(|before| &tokens[before]), Some(Token::Open(_)))
                    && matches!(blocks.last(), Some(&Some(block)) if column.is_some_and(|own| own <= block))
                {
                    // The first line in a block is not indented: nothing can be told from indentation here.
                    return None;
                }
                while column.is_some() && matches!(blocks.last(), Some(&Some(block)) if Some(block) >= column)
                {
                    blocks.pop();
                    repairs.push(Repair::Unclosed { at });
                }
            }
            Token::Word(_) => {}
            Token::Semicolon(_) => name = None,
            Token::Open(_) => blocks.push(name.take().and_then(|name| indentation(text, name.span().start))),
            Token::Close(span) => {
                name = None;
                let column = indentation(text, span.start);
                while column.is_some() && matches!(blocks.last(), Some(&Some(block)) if Some(block) > column)
                {
                    blocks.pop();
                    repairs.push(Repair::Unclosed { at });
                }
                match (blocks.last(), column) {
                    (None, _) => repairs.push(Repair::Extra { at }),
                    (Some(&Some(block)), Some(column)) if block < column => {
                        repairs.push(Repair::Extra { at })
                    }
                    _ => drop(blocks.pop()),
                }
            }
        }
        if repairs.len() > most {
            return None;
        }
    }
    repairs.extend(std::iter::repeat_n(Repair::Unclosed { at: tokens.len() }, blocks.len()));
    (repairs.len() <= most).then_some(repairs)
}
