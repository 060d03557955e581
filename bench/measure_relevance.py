"""Relevance of searches compared with tantivy's, on the same queries and judgements.

    pip install tantivy==0.27.0
    python bench/measure_relevance.py --tatami target/release/tatami --dir DIR --vaswani VASWANI [--japanese FILE.txt] [--record FILE.json]

VASWANI has docs.trec, queries.trec and qrels.txt. The peer is BM25 with the tokenizers `default` and `en_stem` of tantivy's Python package, and a
query of all words, as it is by default. Japanese known items: 150 queries of two to four kanji, each cut from one line of FILE; a query succeeds if
that line is among the first ten hits. The seed is fixed.
"""

import argparse
import json
import math
import os
import random
import re
import subprocess
import sys

DEPTH = 100
KNOWN_ITEMS = 150
KANJI = re.compile(r"[\u4e00-\u9fff]{2,}")


def run(*arguments, codes=(0,)):
    done = subprocess.run(list(map(str, arguments)), capture_output=True, text=True)
    if done.returncode not in codes:
        sys.exit(f"{' '.join(map(str, arguments))}: {done.stderr.strip()}")
    return json.loads(done.stdout) if done.stdout else None


def collection(path):
    """Documents, queries, and the relevant documents of each query."""
    read = lambda name: open(os.path.join(path, name), encoding="utf-8").read()
    documents = [(m[1].strip(), m[2]) for m in re.finditer(r"<DOC>\s*<DOCNO>(.*?)</DOCNO>(.*?)</DOC>", read("docs.trec"), re.S)]
    pattern = r"<num>(.*?)</num>\s*<title>(.*?)</title>"
    queries = [(m[1].strip(), " ".join(m[2].split()).lower()) for m in re.finditer(pattern, read("queries.trec"), re.S)]
    relevant = {}
    for line in read("qrels.txt").splitlines():
        query, _, document, grade = line.split()
        if int(grade) > 0:
            relevant.setdefault(query, set()).add(document)
    return documents, [(number, text) for number, text in queries if number in relevant], relevant


def measures(ranked, relevant):
    """MAP@100, nDCG@10 and recall@100, means over the queries."""
    precision = gain = recall = 0.0
    for query, ids in ranked.items():
        wanted, found, sum_ = relevant[query], 0, 0.0
        for position, document in enumerate(ids, 1):
            if document in wanted:
                found += 1
                sum_ += found / position
        precision += sum_ / len(wanted)
        recall += found / len(wanted)
        ideal = sum(1 / math.log2(k + 2) for k in range(min(10, len(wanted))))
        gain += sum(1 / math.log2(k + 2) for k, document in enumerate(ids[:10]) if document in wanted) / ideal
    return dict(map_100=precision / len(ranked), ndcg_10=gain / len(ranked), recall_100=recall / len(ranked))


def peer(documents, queries, tokenizer):
    import tantivy

    schema = tantivy.SchemaBuilder()
    schema.add_text_field("id", stored=True, tokenizer_name="raw")
    schema.add_text_field("body", stored=False, tokenizer_name=tokenizer)
    index = tantivy.Index(schema.build())
    writer = index.writer(100_000_000, 1)
    for name, text in documents:
        writer.add_document(tantivy.Document(id=name, body=text))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()
    ranked = {}
    for number, text in queries:
        query = index.parse_query(re.sub(r"[^a-z0-9 ]", " ", text), ["body"])
        ranked[number] = [searcher.doc(address)["id"][0] for _, address in searcher.search(query, DEPTH).hits]
    return ranked


def vaswani(args):
    documents, queries, relevant = collection(args.vaswani)
    rows = []
    for tokenizer in ("default", "en_stem"):
        rows.append(dict(what=f"tantivy BM25, {tokenizer}", **measures(peer(documents, queries, tokenizer), relevant)))
    for analyzer in ("english", "plain"):
        segment = os.path.join(args.dir, f"vaswani-{analyzer}.tatami")
        run(args.tatami, "index", os.path.join(args.vaswani, "docs.trec"), "-o", segment, "--analyzer", analyzer, "--force", "--json")
        for rank, *options in [("relevance",), ("relevance", "--expand"), ("bm25",), ("native",)]:
            paths = ["--queries", os.path.join(args.vaswani, "queries.trec"), "--qrels", os.path.join(args.vaswani, "qrels.txt")]
            report = run(args.tatami, "eval", segment, *paths, "--rank", rank, *options, "--json")
            found = {name: report[0][name] for name in ("map_100", "ndcg_10", "recall_100")}
            what = " ".join([f"tatami {analyzer}, {rank}", *options])
            rows.append(dict(what=what, **found))
    base = next(row for row in rows if row["what"].endswith("en_stem"))
    for row in rows:
        for name in ("map_100", "ndcg_10"):
            row[f"{name}_gain"] = row[name] / base[name] - 1
        print(f"{row['what']:42} MAP@100 {row['map_100']:.4f} ({row['map_100_gain']:+.1%})  "
              f"nDCG@10 {row['ndcg_10']:.4f} ({row['ndcg_10_gain']:+.1%})  recall@100 {row['recall_100']:.4f}", flush=True)
    return rows


def japanese(args):
    lines = [line.strip() for line in open(args.japanese, encoding="utf-8-sig") if line.strip()]
    path = os.path.join(args.dir, "japanese.jsonl")
    with open(path, "w", encoding="utf-8") as out:
        for number, line in enumerate(lines):
            out.write(json.dumps(dict(id=str(number), text=line), ensure_ascii=False) + "\n")
    choose = random.Random(1)
    items = []
    while len(items) < KNOWN_ITEMS:
        number = choose.randrange(len(lines))
        words = KANJI.findall(lines[number])
        if words:
            word = choose.choice(words)
            length = min(len(word), choose.randint(2, 4))
            start = choose.randrange(len(word) - length + 1)
            items.append((str(number), word[start:start + length]))
    rows = []
    for analyzer in ("standard", "plain"):
        segment = os.path.join(args.dir, f"japanese-{analyzer}.tatami")
        run(args.tatami, "index", path, "-o", segment, "--analyzer", analyzer, "--force", "--json")
        found = 0
        for number, query in items:
            report = run(args.tatami, "search", segment, query, "--json", "--count", "off", "--snippet-bytes", 0, codes=(0, 1))
            found += any(hit["doc_id"] == number for hit in report["hits"])
        rows.append(dict(what=f"Japanese known items, {analyzer}", lines=len(lines), queries=len(items), top_10=found / len(items)))
        print(f"{rows[-1]['what']:42} top-10 {found / len(items):.1%} of {len(items)} queries, {len(lines)} lines", flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--tatami", "--dir", "--vaswani"):
        parser.add_argument(name, required=True)
    parser.add_argument("--japanese")
    parser.add_argument("--record")
    args = parser.parse_args()
    os.makedirs(args.dir, exist_ok=True)
    rows = vaswani(args)
    if args.japanese:
        rows += japanese(args)
    if args.record:
        commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
        with open(args.record, "w") as out:
            json.dump(dict(commit=commit, rows=rows), out, indent=1)


if __name__ == "__main__":
    main()
