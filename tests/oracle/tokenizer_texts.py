"""Texts on which tokenizers tend to disagree, by what makes them hard."""

DIGITS = """0
7
42
123
1234
12345
123456789012345678901234567890
3.14159
1,234,567.89
-17
+1-555-0123
0x1F4A9
1e-10
2026-11-29T23:59:59Z
v1.2.3
a1b2c3
1 2  3   4
²³½¾Ⅷ
١٢٣٤
१२३
１２３
100%
$5.00
x² + y³ = 1""".split("\n")

WORDS = """Hello
hello world
Hello, world!
The quick brown fox jumps over the lazy dog.
I'm you're he'll we've they'd it's don't
I'M YOU'RE HE'LL WE'VE THEY'D IT'S DON'T
O'Neill's rock'n'roll
'tis ''quoted'' 'single'
naïve café résumé
CamelCase snake_case kebab-case SCREAMING_CASE
antidisestablishmentarianism
e.g. i.e. etc.
U.S.A.
...
???!!!
—–-
“quotes” ‘single’ «guillemets»
#hashtag @mention
user@example.com
https://example.com/a/b?c=d&e=f#g
C:\\Users\\name\\file.txt
/usr/local/bin
[link](http://x.y)
**bold** _it_ `code`
<b>html</b> &amp; &#39;
A
a
I""".split("\n")

CODE = [
    "def f(x):\n    return x + 1\n",
    "for (int i = 0; i < n; i++) { a[i] += b[i]; }",
    "if x == 1:\n\tpass\nelse:\n\traise ValueError('no')\n",
    'fn main() {\n    println!("{:?}", vec![1, 2, 3]);\n}\n',
    "SELECT * FROM t WHERE a >= 10 AND b <> 'x';",
    "#include <stdio.h>\r\nint main(void)\r\n{\r\n\treturn 0;\r\n}\r\n",
    "let s = `a${b}c`; // comment\n/* block\n   comment */",
    "a=b;c=d&&e||f;g!=h;i===j;k=>l;m->n;o::p",
    '{"key": [1, 2.5, null, true], "nested": {"a": "b"}}',
    '<div class="a">\n  <p>text</p>\n</div>',
    "x = lambda a: a**2 if a else -a",
    "\\frac{1}{2} \\sum_{i=0}^{n} x_i",
    "0b1010 0o17 0xdead_beef 1_000_000",
    "        deeply indented",
    "\t\t\ttabs",
    "a  +  b",
    "print('it''s')",
    "$PATH ${HOME} $(pwd) 2>&1 | grep -v '^#'",
    "std::vector<std::pair<int, int>> v{{1, 2}};",
    "@decorator\nclass A(B):\n    x: int = 0\n\n\n    def g(self): ...\n",
]

BLANKS = [
    "",
    " ",
    "  ",
    "   ",
    "\n",
    "\n\n",
    "\n\n\n",
    "\r\n",
    "\r\n\r\n",
    "\t",
    "\t\t",
    " \n",
    "\n ",
    " \n ",
    "  \n  \n  ",
    "a ",
    " a",
    " a ",
    "a  b",
    "a   b",
    "a\nb",
    "a\n\nb",
    "a \n b",
    "a\n \nb",
    "a\r\n b",
    "a\tb",
    "a \t b",
    "a\n\n  b",
    "  a\n    b\n  c",
    "a" + " " * 17 + "b",
    " " * 100,
    "\n" * 50,
    "a\u00a0b",
    "a\u00a0 b",
    "a \u00a0b",
    "\u3000全角\u3000",
    "a\u2003b\u2009c\u202fd",
    "a\u0085b",
    "a\u2028b\u2029c",
    "a\u200bb",
    "a\ufeffb",
    "\ufeffstart",
    "a\x0bb\x0cc",
    "1 \n2\n 3",
    " 1",
    "  1",
    "! \n\n!",
    "!\n",
    "!\n\n\n x",
    ".\r\n\r\n.",
    "a \n",
    "x  \n\n  1  y",
]

SCRIPTS = """你好，世界！
中文分词没有空格
中文 and English 混排 123 测试
日本語のテキスト、ひらがなとカタカナ。
ｶﾀｶﾅ　ＡＢＣ
한국어 문장입니다.
각각
Привет, мир!
Ελληνικά γράμματα
שלום עולם
שָׁלוֹם
مرحبا بالعالم
اَلْعَرَبِيَّةُ
فارسی نیم‌فاصله می‌شود
हिन्दी में लिखा
தமிழ் மொழி
ภาษาไทยไม่มีช่องว่าง
ខ្មែរ
မြန်မာ
ქართული
Հայերեն
አማርኛ
Tiếng Việt có dấu
Türkçe İstanbul ığüşöç
Straße ẞ ﬁ ﬂ
ǅ ǈ ʰ ª º
𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝟙𝟚𝟛
𐍈𐌰𐌹
𠜎𠜱𠝹
①②③ ㊀㊁ ㋀
№ ™ © ® ° µ
€ £ ¥ ₿
→ ← ⇒ ∀x∈ℝ: ∃y ≤ ∞
░▒▓█ ┌─┐
♠♥♦♣ ♪♫""".split("\n")

EMOJI = [
    "😀",
    "😀😃😄",
    "Hello 😀 world",
    "👍🏽",
    "👩‍👩‍👧‍👦",
    "🏳️‍🌈",
    "🇩🇪🇫🇷",
    "1️⃣2️⃣",
    "❤️",
    "❤",
    "a😀b",
    "😀 1",
    "🤦🏿‍♂️!",
    "👨🏻‍💻 codes",
    "🫠🫡",
    "™️",
]

MARKS = [
    "e\u0301",
    "cafe\u0301",
    "n\u0303o",
    "A\u030a",
    "\u0301",
    " \u0301",
    "a\u0300\u0301\u0302\u0303",
    "Z̷̢̛a̶l̸g̵o̶",
    "각",
    "क\u094d\u0937",
    "a\u200db",
    "\u200d",
    "a\u200eb\u200fc",
    "\u202eabc\u202c",
    "o\u0308 ö",
    "i\u0307\u0130\u0131",
]

ODD = [
    "\x00",
    "a\x00b",
    "\x01\x02\x03",
    "\x1b[31mred\x1b[0m",
    "\x7f",
    "\x80\x9f",
    "\u00ad",
    "\ufffd",
    "\ufffe",
    "\ufdd0",
    "\ue000",
    "\U000f0000",
    "\U0010ffff",
    "Ġ",
    "Ċ",
    "ĠthisĊis",
    "▁the",
    "[UNK]",
    "[PAD151665]",
    "'",
    "''",
    "'s",
    " 's",
    "'S",
    "'ſ",
    "'x",
    "\u2019s",
    "a'b",
    "1's",
    "_",
    "__init__",
    "a_b",
    "--",
    "=" * 80,
    "-" * 33,
    "*" * 7,
    "a" * 257,
    "ab" * 100,
    "A" * 64,
    "1" * 40,
    "你" * 30,
    "😀" * 20,
    "é" * 50,
    "pneumonoultramicroscopicsilicovolcanoconiosis" * 5,
    "acgt" * 60,
    "qwertyuiopasdfghjklzxcvbnm" * 8,
    "aGVsbG8gd29ybGQhIFRoaXMgaXMgYmFzZTY0IHRleHQu",
    "d41d8cd98f00b204e9800998ecf8427e",
]

SPECIALS = [
    "<|im_start|>",
    "<|im_end|>",
    "<|endoftext|>",
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
    "a<|im_end|>b",
    " <|im_end|> ",
    "a  <|im_end|>  b",
    "<|im_end|><|im_end|>",
    "<|im_end|",
    "|im_end|>",
    "<|im_<|im_end|>end|>",
    "< |im_end|>",
    "<|IM_END|>",
    "<|im_end|>1",
    "\n<|im_end|>\n\n",
    "<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>",
    '<tool_call>\n{"name": "f"}\n</tool_call>',
    "x <tool_call> y",
    "<repo_name>a<file_sep>b",
    "<jupyter_code>1<empty_output>",
    "<|eot_id|>",
    "<s>",
    "<unk>",
    "<think>hm</think>",
]

ALL = [*DIGITS, *WORDS, *CODE, *BLANKS, *SCRIPTS, *EMOJI, *MARKS, *ODD, *SPECIALS]
