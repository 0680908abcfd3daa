"""llama.cpp's own reading of vocabularies: a program over libllama, compiled here.

`read(source, library, files, texts)` gives for each GGUF file its ids of each text (control tokens as text, no frame), the id it puts before a
text, and the ids that end a generation; or None where llama.cpp refuses the file.
"""

import pathlib
import subprocess
import tempfile

import gguf

PROGRAM = r"""
#include "llama.h"
#include <cstdio>
#include <string>
#include <vector>
int main(int argc, char ** argv) {
    llama_log_set([](ggml_log_level, const char *, void *) {}, nullptr);
    std::vector<std::string> texts;
    int count = 0;
    if (scanf("%d", &count) != 1) return 1;
    for (int i = 0; i < count; i++) {
        unsigned n = 0;
        if (scanf("%u%*c", &n) != 1) return 1;
        std::string s(n, 0);
        if (fread(&s[0], 1, n, stdin) != n) return 1;
        texts.push_back(s);
    }
    for (int a = 1; a < argc; a++) {
        auto params = llama_model_default_params();
        params.vocab_only = true;
        auto * model = llama_model_load_from_file(argv[a], params);
        if (!model) { printf("refused\n"); continue; }
        auto * vocab = llama_model_get_vocab(model);
        printf("%d", llama_vocab_get_add_bos(vocab) ? llama_vocab_bos(vocab) : -1);
        printf(";");
        for (int id = 0; id < llama_vocab_n_tokens(vocab); id++) if (llama_vocab_is_eog(vocab, id)) printf(" %d", id);
        for (auto & t : texts) {
            std::vector<llama_token> ids(t.size() + 8);
            int n = llama_tokenize(vocab, t.data(), t.size(), ids.data(), ids.size(), false, false);
            printf(";");
            for (int i = 0; i < n; i++) printf(" %d", ids[i]);
        }
        printf("\n");
        llama_model_free(model);
    }
}
"""


def write(path, model, tokens, types=None, scores=None, merges=None, pre=None, more=()):
    """A GGUF file with nothing but a vocabulary."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model(model)
    if pre is not None:
        writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    if scores is not None:
        writer.add_token_scores(scores)
    if types is not None:
        writer.add_token_types(types)
    if merges is not None:
        writer.add_token_merges(merges)
    for key, value in more:
        if isinstance(value, bool):
            writer.add_bool(key, value)
        elif isinstance(value, list):
            writer.add_array(key, value)
        else:
            writer.add_uint32(key, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


def read(source, library, files, texts):
    folder = library.parent.resolve()
    with tempfile.TemporaryDirectory() as made:
        program = pathlib.Path(made) / "judge"
        (pathlib.Path(made) / "judge.cpp").write_text(PROGRAM)
        includes = [f"-I{source}/include", f"-I{source}/ggml/include"]
        link = [f"-L{folder}", f"-Wl,-rpath,{folder}", "-lllama"]
        command = ["g++", "-O1", "-std=c++17", *includes, f"{made}/judge.cpp", "-o", program, *link]
        subprocess.run(command, check=True)
        job = f"{len(texts)}\n".encode()
        for text in texts:
            data = text.encode()
            job += str(len(data)).encode() + b" " + data + b"\n"
        done = subprocess.run([program, *files], input=job, capture_output=True, check=True)
    result = []
    for line in done.stdout.decode().splitlines():
        if line == "refused":
            result.append(None)
            continue
        bos, ends, *ids = line.split(";")
        numbers = [[int(number) for number in part.split()] for part in ids]
        result.append((int(bos), [int(number) for number in ends.split()], numbers))
    return result
