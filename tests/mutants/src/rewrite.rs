//! A source in which each mutant is a branch.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{LineColumn, Span};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{Arm, Block, Expr, ExprBinary, ExprStruct, ExprUnary, ImplItemFn, ItemFn};
use syn::{ImplItemConst, ItemConst, ItemMod, ItemStatic};

use crate::Outcome;
use crate::mutant::{Genre, Mutant, Position};

/// Is true of the number of the mutant that was chosen.
pub const CHOSEN: &str = "crate::is_mutant";

/// The source with a branch for each of these mutants, by their numbers, and those that have become one.
pub fn rewritten(source: &str, mutants: &[(usize, &Mutant)]) -> Outcome<(String, BTreeSet<usize>)> {
    let mut by_start: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (number, mutant) in mutants {
        let there = by_start.entry(mutant.span.start).or_default();
        there.push((*number, *mutant));
    }
    let line_ends = source.match_indices('\n').map(|(at, _)| at + 1);
    let mut rewriter = Rewriter {
        source,
        lines: std::iter::once(0).chain(line_ends).collect(),
        by_start,
        insertions: Vec::new(),
        constants: 0,
        done: BTreeSet::new(),
    };
    rewriter.visit_file(&syn::parse_file(source)?);
    Ok(rewriter.finish())
}

struct Rewriter<'a> {
    source: &'a str,
    /// Where each line begins.
    lines: Vec<usize>,
    by_start: BTreeMap<Position, Vec<(usize, &'a Mutant)>>,
    insertions: Vec<Insertion>,
    /// Within how many constants the present expression is: nothing is chosen there.
    constants: usize,
    done: BTreeSet<usize>,
}

struct Insertion {
    at: usize,
    /// Whether it goes with what follows, and not with what it stands behind.
    is_before: bool,
    text: String,
}

impl<'a> Rewriter<'a> {
    fn finish(self) -> (String, BTreeSet<usize>) {
        let mut insertions: Vec<_> = self.insertions.into_iter().enumerate().collect();
        // Outer expressions were visited first: they begin before inner ones, and end after them.
        insertions.sort_by_key(|(order, own)| {
            let order = *order as isize;
            let order = if own.is_before { order } else { -order };
            (own.at, own.is_before, order)
        });
        let mut out = String::new();
        let mut from = 0;
        for (_, Insertion { at, text, .. }) in insertions {
            out += &self.source[from..at];
            out += &text;
            from = at;
        }
        out += &self.source[from..];
        (out, self.done)
    }

    fn offset(&self, place: LineColumn) -> usize {
        let line = self.lines[place.line - 1];
        let mut characters = self.source[line..].char_indices();
        let found = characters.nth(place.column);
        found.map_or(self.source.len(), |(at, _)| line + at)
    }

    fn text(&self, span: Span) -> &'a str {
        &self.source[self.offset(span.start())..self.offset(span.end())]
    }

    /// The mutants of a genre that begin where this does, of which something is made now.
    fn take(&mut self, span: Span, genre: Genre) -> Vec<(usize, &'a Mutant)> {
        let LineColumn { line, column } = span.start();
        let place = Position {
            line,
            column: column + 1,
        };
        if self.constants > 0 {
            return Vec::new();
        }
        let there = self.by_start.get(&place).into_iter().flatten().copied();
        let found: Vec<_> = there.filter(|(_, mutant)| mutant.genre == genre).collect();
        self.done.extend(found.iter().map(|(number, _)| number));
        found
    }

    fn insert(&mut self, at: usize, is_before: bool, text: String) {
        self.insertions.push(Insertion {
            at,
            is_before,
            text,
        });
    }

    fn wrap(&mut self, span: Span, before: String, after: &str) {
        self.insert(self.offset(span.start()), true, before);
        self.insert(self.offset(span.end()), false, after.to_owned());
    }

    fn body(&mut self, block: &Block) {
        let Some(first) = block.stmts.first() else {
            return;
        };
        let all = self.take(first.span(), Genre::FnValue);
        let returns = all.iter().map(|(number, mutant)| {
            let value = &mutant.replacement;
            format!("if {CHOSEN}({number}) {{ return {value}; }} ")
        });
        self.insert(self.offset(first.span().start()), true, returns.collect());
    }

    fn constant(&mut self, visit: impl FnOnce(&mut Self)) {
        self.constants += 1;
        visit(self);
        self.constants -= 1;
    }

    fn function(&mut self, is_constant: bool, block: &Block, visit: impl FnOnce(&mut Self)) {
        if is_constant {
            return self.constant(visit);
        }
        self.body(block);
        visit(self);
    }
}

/// Whether an expression binds variables: it cannot be put into braces.
fn binds(expression: &Expr) -> bool {
    match expression {
        Expr::Let(_) => true,
        Expr::Binary(binary) => binds(&binary.left) || binds(&binary.right),
        _ => false,
    }
}

impl<'ast> Visit<'ast> for Rewriter<'_> {
    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        let is_constant = item.sig.constness.is_some();
        self.function(is_constant, &item.block, |this| {
            visit::visit_item_fn(this, item)
        });
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        let is_constant = item.sig.constness.is_some();
        self.function(is_constant, &item.block, |this| {
            visit::visit_impl_item_fn(this, item)
        });
    }

    fn visit_item_const(&mut self, item: &'ast ItemConst) {
        self.constant(|this| visit::visit_item_const(this, item));
    }

    fn visit_impl_item_const(&mut self, item: &'ast ImplItemConst) {
        self.constant(|this| visit::visit_impl_item_const(this, item));
    }

    fn visit_item_static(&mut self, item: &'ast ItemStatic) {
        self.constant(|this| visit::visit_item_static(this, item));
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        let is_test = item
            .attrs
            .iter()
            .any(|own| self.text(own.span()) == "#[cfg(test)]");
        if !is_test {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_expr_binary(&mut self, own: &'ast ExprBinary) {
        if !binds(&own.left) && !binds(&own.right) {
            let (left, right) = (self.text(own.left.span()), self.text(own.right.span()));
            let all = self.take(own.op.span(), Genre::BinaryOperator);
            let others = all.iter().map(|(number, mutant)| {
                let operator = &mutant.replacement;
                format!("if {CHOSEN}({number}) {{ {left} {operator} {right} }} else ")
            });
            let others: String = others.collect();
            if !others.is_empty() {
                self.wrap(own.span(), format!("({others}{{ "), " })");
            }
        }
        visit::visit_expr_binary(self, own);
    }

    fn visit_expr_unary(&mut self, own: &'ast ExprUnary) {
        let inner = self.text(own.expr.span());
        if let [(number, _)] = self.take(own.op.span(), Genre::UnaryOperator)[..] {
            let before = format!("(if {CHOSEN}({number}) {{ {inner} }} else {{ ");
            self.wrap(own.span(), before, " })");
        }
        visit::visit_expr_unary(self, own);
    }

    fn visit_expr_struct(&mut self, own: &'ast ExprStruct) {
        let whole = self.text(own.span());
        let start = self.offset(own.span().start());
        let mut others = String::new();
        for field in &own.fields {
            for (number, _) in self.take(field.span(), Genre::StructField) {
                let before = &whole[..self.offset(field.span().start()) - start];
                let behind = &whole[self.offset(field.span().end()) - start..];
                let (_comma, behind) = behind.split_once(',').unwrap_or_default();
                others += &format!("if {CHOSEN}({number}) {{ {before}{behind} }} else ");
            }
        }
        if !others.is_empty() {
            self.wrap(own.span(), format!("({others}{{ "), " })");
        }
        visit::visit_expr_struct(self, own);
    }

    fn visit_arm(&mut self, arm: &'ast Arm) {
        let all = self.take(arm.span(), Genre::MatchArm);
        let is_there = all
            .iter()
            .map(|(number, _)| format!("!{CHOSEN}({number}) && "));
        let is_there: String = is_there.collect();
        match &arm.guard {
            None if !is_there.is_empty() => {
                let at = self.offset(arm.pat.span().end());
                self.insert(at, false, format!(" if {is_there}true"));
            }
            Some((_, guard)) if !binds(guard) => {
                let all = self.take(guard.span(), Genre::MatchArmGuard);
                let others = all
                    .iter()
                    .map(|(number, mutant)| match &*mutant.replacement {
                        "true" => format!("{CHOSEN}({number}) || "),
                        _ => format!("!{CHOSEN}({number}) && "),
                    });
                let others: String = others.collect();
                self.wrap(guard.span(), format!("{is_there}({others}("), "))");
            }
            _ => {}
        }
        visit::visit_arm(self, arm);
    }
}
