//! Templates that would eat memory or time, read files, or leave the sandbox: each with its typed
//! error or its right text, in a process of its own under limits of memory and time.

use crate::child;
use serde_json::Value as Json;
use specdec_engine::load::{ChatOptions, ChatTemplate, template::message};

/// A template, and how the debug form of its outcome begins.
type Case = (&'static str, &'static str);

const WORK: &str = "Err(TooMuchWork";
const SYNTAX: &str = "Err(Syntax";
const FAILED: &str = "Err(Failed";

/// Lists and texts that grow.
#[rustfmt::skip]
const GROWTH: [Case; 34] = [
    ("{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = ns.l + ns.l %}{% endfor %}{{ ns.l | length }}", WORK),
    ("{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = ns.l + ns.l %}{% endfor %}{{ ns.l }}", WORK),
    ("{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = ns.l * 2 %}{% endfor %}{{ ns.l | last }}", WORK),
    ("{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l }}", WORK),
    ("{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l | tojson }}", WORK),
    ("{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l == ns.l }}", WORK),
    ("{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ [ns.l] | sort }}", WORK),
    ("{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = {'a': ns.l, 'b': ns.l} %}{% endfor %}{{ ns.l ~ '' }}", WORK),
    ("{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l in ns.l }}", WORK),
    ("{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ [ns.l, ns.l] | unique | length }}", WORK),
    ("{% set ns = namespace(s='x') %}{% for i in range(99) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}", WORK),
    ("{% set ns = namespace(s='x') %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}{% endfor %}", WORK),
    ("{% set ns = namespace(s='xx') %}{% for i in range(99) %}{% set ns.s = ns.s | replace('x', ns.s) %}{% endfor %}", WORK),
    ("{% set ns = namespace(s='xx') %}{% for i in range(99) %}{% set ns.s = ns.s.replace('x', ns.s) %}{% endfor %}", WORK),
    ("{% set ns = namespace(s='xx') %}{% for i in range(99) %}{% set ns.s = ns.s.replace('', ns.s) %}{% endfor %}", WORK),
    ("{% set ns = namespace(s='xx') %}{% for i in range(99) %}{% set ns.s = ns.s.join([ns.s, ns.s]) %}{% endfor %}", WORK),
    ("{% set ns = namespace(s='<') %}{% for i in range(99) %}{% set ns.s = ns.s | e | e | e | e %}{% endfor %}", r#"Ok(""#),
    ("{% set ns = namespace(s='\"') %}{% for i in range(99) %}{% set ns.s = ns.s | tojson %}{% endfor %}", WORK),
    ("{% set ns = namespace(s='x\ny') %}{% for i in range(99999) %}{% set ns.s = ns.s | indent(16, true) %}{% endfor %}", WORK),
    ("{{ 'x' * 1000000000 }}", WORK),
    ("{{ 9223372036854775807 * 'xy' }}", WORK),
    ("{{ ['x'] * 1000000000 }}", WORK),
    ("{{ (['x'] * 99999999) | list }}", WORK),
    ("{{ ([1] * 9223372036854775807) | length }}", WORK),
    ("{{ 'x' * 99999999 ~ 'x' * 99999999 ~ 'x' * 99999999 }}", WORK),
    ("{{ range(1000000000) | list }}", WORK),
    ("{{ range(-9223372036854775807, 9223372036854775807) }}", WORK),
    ("{{ range(0, 9223372036854775807, 4611686018427387904) }}", r#"Ok("[0, 4611686018427387904]"#),
    ("{{ 'a'.join(['b' * 9999999] * 9999) }}", WORK),
    ("{{ (['b' * 9999999] * 9999) | join }}", WORK),
    ("{{ ('a' * 999999) | list | sort | join('a' * 999999) }}", WORK),
    ("{{ range(999999) | map('string') | join('x' * 99999) }}", WORK),
    ("{{ ('a ' * 9999999).split() | length }}", WORK),
    ("{% set ns = namespace(m={}) %}{% for i in range(999999) %}{% set ns.m = dict(ns.m, a=i) %}{% endfor %}", WORK),
];

/// Loops, macros and operators without an end.
#[rustfmt::skip]
const LOOPS: [Case; 22] = [
    ("{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}", WORK),
    ("{% for i in range(99999) %}{% for j in range(99999) %}x{% endfor %}{% endfor %}", WORK),
    ("{% for i in range(99999) %}{% for j in range(99999) if false %}{% endfor %}{% endfor %}", WORK),
    ("{% for i in range(9999) %}{% set x = range(9999) | sort(reverse=true) %}{% endfor %}", WORK),
    ("{% for i in range(9999) %}{% set x = range(9999) | unique %}{% endfor %}", WORK),
    ("{% for i in range(9999) %}{% set x = range(9999) | sum %}{% endfor %}", WORK),
    ("{% for i in range(9999) %}{% set x = 9999 in range(9999) %}{% endfor %}", WORK),
    ("{% for i in range(9999) %}{% set x = 'y' in 'x' * 99999 %}{% endfor %}", WORK),
    ("{% for i in range(9999) %}{% set x = ('x' * 99999).find('xy') %}{% endfor %}", WORK),
    ("{% for i in range(9999) %}{% set x = ('x' * 99999) == ('x' * 99999) %}{% endfor %}", WORK),
    ("{% for i in range(9999) %}{% set x = ('x' * 99999)[::-1] %}{% endfor %}", WORK),
    ("{% for i in range(9999) %}{% set x = ('x' * 99999) | trim('x') %}{% endfor %}", WORK),
    ("{% for i in range(9999) %}{% set x = ('X' * 99999) | lower %}{% endfor %}", WORK),
    ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", FAILED),
    ("{% macro f(x) %}{{ f(x ~ x) }}{% endmacro %}{{ f('x') }}", WORK),
    ("{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}{{ f() }}{% endmacro %}{{ f() }}", FAILED),
    ("{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}", WORK),
    ("{% macro f(x=f()) %}{{ x }}{% endmacro %}{{ f() }}", FAILED),
    ("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", FAILED),
    ("{% macro f() %}{{ caller() }}{% endmacro %}{% call f() %}{% endcall %}", FAILED),
    ("{{ 2 ** 99999999 }}", FAILED),
    ("{{ 9223372036854775807 + 1 }}", FAILED),
];

/// What nests without an end, or contains itself.
#[rustfmt::skip]
const NESTING: [Case; 18] = [
    ("{% set ns = namespace(l=[]) %}{% for i in range(999) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l }}", FAILED),
    ("{% set ns = namespace(l=[]) %}{% for i in range(99999) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l | tojson }}", FAILED),
    ("{% set ns = namespace(l={}) %}{% for i in range(999) %}{% set ns.l = {'k': ns.l} %}{% endfor %}", FAILED),
    ("{% set ns = namespace(l=()) %}{% for i in range(999) %}{% set ns.l = (ns.l, 1) %}{% endfor %}", FAILED),
    ("{% set ns = namespace(l=[]) %}{% for i in range(99) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l | length }}", r#"Ok("1""#),
    ("{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}", FAILED),
    ("{% set ns = namespace() %}{% set ns.x = ns %}{{ ns ~ '' }}", FAILED),
    ("{% set ns = namespace() %}{% set ns.x = ns %}{{ 'a' ~ ns.x ~ 'b' }}", FAILED),
    ("{% set ns = namespace() %}{% set ns.x = [ns] %}{{ ns.x ~ '' }}", FAILED),
    ("{% set ns = namespace() %}{% set ns.x = {'a': ns} %}{{ ns.x | tojson }}", FAILED),
    ("{% set ns = namespace() %}{% set ns.x = [ns] %}{{ ns.x | string }}", FAILED),
    ("{% set ns = namespace() %}{% set ns.x = [ns, ns] %}{{ ns.x | join }}", FAILED),
    ("{% set ns = namespace() %}{% set ns.x = [ns] %}{{ ns.x == ns.x }}", r#"Ok("True""#),
    ("{% set a = namespace() %}{% set b = namespace(a=a) %}{% set a.b = b %}{{ a.b.a.b.a == a }}", r#"Ok("True""#),
    ("{% set ns = namespace() %}{% set ns.x = ns %}{{ [ns] | sort }}", FAILED),
    ("{% for i in range(9) %}{{ loop }}{% endfor %}", FAILED),
    ("{{ [range] }}", FAILED),
    ("{{ {[]: 1} }}", FAILED),
];

/// Doors out of the sandbox, and arguments that no function takes.
#[rustfmt::skip]
const DOORS: [Case; 44] = [
    ("{% include '/etc/passwd' %}", SYNTAX),
    ("{% import 'x' as x %}{{ x }}", SYNTAX),
    ("{% from 'x' import y %}", SYNTAX),
    ("{% extends 'chat' %}", SYNTAX),
    ("{% block a %}{% endblock %}", SYNTAX),
    ("{{ ''.__class__.__mro__[1].__subclasses__() }}", FAILED),
    ("{{ messages.__init__.__globals__ }}", FAILED),
    ("{{ cycler.__init__.__globals__.os.popen('id').read() }}", FAILED),
    ("{{ self.__init__ }}", FAILED),
    ("{{ lipsum() }}", FAILED),
    ("{{ debug() }}", FAILED),
    ("{{ open('/etc/passwd') }}", FAILED),
    ("{{ messages | attr('__class__') }}", r#"Ok("""#),
    ("{{ (messages | attr('__class__')).x }}", FAILED),
    ("{{ '%999999999d' | format(1) }}", FAILED),
    ("{{ '{:999999999}'.format(1) }}", FAILED),
    ("{{ 'x' | indent(999999999) }}", FAILED),
    ("{{ 'x' | indent(-1) }}", FAILED),
    ("{{ 'x' | center(999999999) }}", FAILED),
    ("{{ 'x'.ljust(999999999) }}", FAILED),
    ("{{ 'x'.zfill(999999999) }}", FAILED),
    ("{{ 'x'.encode('utf-8') }}", FAILED),
    ("{{ [1] | tojson(indent=999999999) }}", FAILED),
    ("{{ [1] | tojson(indent=-1) }}", FAILED),
    ("{{ [1] | batch(99999999, 'x') | list }}", FAILED),
    ("{{ [1] | slice(99999999) | list }}", FAILED),
    ("{{ strftime_now('%999999999d') }}", FAILED),
    ("{{ strftime_now('%Q %') }}", FAILED),
    ("{{ strftime_now('%Y' * 9999) }}", FAILED),
    ("{{ 1 / 0 }}", FAILED),
    ("{{ 1 // 0 }}", FAILED),
    ("{{ 1 % 0 }}", FAILED),
    ("{{ 1.5 % 0 }}", FAILED),
    ("{{ (-9223372036854775807 - 1) // -1 }}", FAILED),
    ("{{ 'x'[::0] }}", FAILED),
    ("{{ 'abc'[9223372036854775807:-9223372036854775807:-9223372036854775807] }}", r#"Ok("c""#),
    ("{{ 'abc'[-9223372036854775807] }}", r#"Ok("""#),
    ("{{ 'a'.split('') }}", FAILED),
    ("{{ range(1, 2, 0) }}", FAILED),
    ("{{ [1, 'a', none] | sort }}", FAILED),
    ("{{ [[1], ['a'], [none]] | sort }}", FAILED),
    ("{% set messages.x = 1 %}", FAILED),
    ("{% set a, b = [1] %}", FAILED),
    ("{{ f(*messages) }}", FAILED),
];

fn cases() -> Vec<Case> {
    [&GROWTH[..], &LOOPS, &NESTING, &DOORS].concat()
}

fn outcome(source: &str) -> String {
    let messages: [Json; 1] = [message("user", "hello")];
    let rendered = ChatTemplate::new(source, crate::template::chat_tokenizer())
        .and_then(|template| template.render(&messages, &ChatOptions::default()));
    format!("{:?}", rendered.map(|prompt| prompt.text))
}

/// What the child process does.
#[test]
#[ignore = "runs in a child process of the next test"]
fn child_renders() {
    for (number, (source, _)) in cases().into_iter().enumerate() {
        child::report(number, || outcome(source));
    }
}

/// Of 448 MiB of addresses the stack takes 64, a rendering's data up to 64 at a time, and the test's
/// own threads and heap arenas the rest. The seconds are for all cases together.
#[test]
fn every_hostile_template_has_its_outcome() {
    let cases = cases();
    assert!(cases.len() >= 100);
    let reports = child::run("hostile_templates::child_renders", 448 << 20, 30);
    assert_eq!(reports.len(), cases.len(), "the child ended early");
    for ((source, expected), report) in cases.iter().zip(&reports) {
        assert!(report.text.starts_with(expected), "{source}: {}", report.text);
        assert!(report.bytes <= 128 << 20, "{source} took {} bytes", report.bytes);
        assert!(report.millis <= 1000, "{source} took {} ms", report.millis);
    }
}

#[test]
fn a_template_of_a_hundred_thousand_brackets_is_refused() {
    for deep in ["{% if 1 %}".repeat(6_000), "{{ ".to_owned() + &"(".repeat(60_000)] {
        assert!(outcome(&deep).starts_with(SYNTAX), "{:.80}", outcome(&deep));
    }
}
