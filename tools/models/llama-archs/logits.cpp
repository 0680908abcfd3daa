// Logits of two token sequences that llama.cpp computes with a model: `logits MODEL PREFIX`.
//
// Writes PREFIX.ids and PREFIX.logits, and the same of another sequence to PREFIX.beside.ids and PREFIX.beside.logits. A file of ids has
// the numbers with commas between them; a file of logits has one row for each id, f32, in the machine's byte order. Everything is computed in f32 on one thread.

#include "llama.h"

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace {

constexpr int tokens = 128;

struct Sequence {
    const char *suffix;
    int step;
    int first;
};

// Both have every id of a vocabulary of 128 once.
constexpr Sequence sequences[] = {{"", 7, 3}, {".beside", 5, 1}};

int failed(const char *what, const std::string &where) {
    std::fprintf(stderr, "%s: %s\n", where.c_str(), what);
    return 1;
}

// Writes a file; its last bytes may fail as late as at its end.
int write_file(const std::string &path, const void *bytes, size_t size) {
    std::FILE *file = std::fopen(path.c_str(), "wb");
    if (!file) {
        return failed(std::strerror(errno), path);
    }
    const bool written = std::fwrite(bytes, 1, size, file) == size;
    const int error = errno;
    if (std::fclose(file) != 0) {
        return failed(std::strerror(errno), path);
    }
    return written ? 0 : failed(std::strerror(error), path);
}

int compute(llama_model *model, int vocabulary, const Sequence &sequence, const std::string &prefix) {
    llama_context_params params = llama_context_default_params();
    params.n_ctx = tokens;
    params.n_batch = tokens;
    params.n_ubatch = tokens;
    params.n_threads = 1;
    params.n_threads_batch = 1;
    params.type_k = GGML_TYPE_F32;
    params.type_v = GGML_TYPE_F32;
    params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    std::unique_ptr<llama_context, decltype(&llama_free)> context(llama_init_from_model(model, params), llama_free);
    if (!context) {
        return failed("llama.cpp made no context", prefix);
    }
    std::vector<llama_token> ids(tokens);
    std::vector<llama_pos> positions(tokens);
    std::vector<int32_t> counts(tokens, 1);
    std::vector<llama_seq_id> zeros(tokens, 0);
    std::vector<llama_seq_id *> owners(tokens);
    std::vector<int8_t> wanted(tokens, 1);
    std::string text;
    for (int i = 0; i < tokens; i++) {
        ids[i] = (i * sequence.step + sequence.first) % vocabulary;
        positions[i] = i;
        owners[i] = &zeros[i];
        text += (i == 0 ? "" : ",") + std::to_string(ids[i]);
    }
    llama_batch batch = {};
    batch.n_tokens = tokens;
    batch.token = ids.data();
    batch.pos = positions.data();
    batch.n_seq_id = counts.data();
    batch.seq_id = owners.data();
    batch.logits = wanted.data();
    const int status = llama_decode(context.get(), batch);
    if (status != 0) {
        return failed(("llama_decode returned " + std::to_string(status)).c_str(), prefix);
    }
    std::vector<float> logits;
    for (int i = 0; i < tokens; i++) {
        const float *row = llama_get_logits_ith(context.get(), i);
        if (!row) {
            return failed(("llama.cpp has no logits of token " + std::to_string(i)).c_str(), prefix);
        }
        for (int id = 0; id < vocabulary; id++) {
            if (!std::isfinite(row[id])) {
                return failed(("a logit of token " + std::to_string(i) + " is not finite").c_str(), prefix);
            }
        }
        logits.insert(logits.end(), row, row + vocabulary);
    }
    const std::string path = prefix + sequence.suffix;
    const int written = write_file(path + ".logits", logits.data(), logits.size() * sizeof(float));
    return written != 0 ? written : write_file(path + ".ids", text.data(), text.size());
}

}  // namespace

int main(int argc, char **argv) {
    if (argc != 3) {
        return failed("logits MODEL PREFIX", "usage");
    }
    llama_log_set(
        [](ggml_log_level level, const char *text, void *) {
            if (level == GGML_LOG_LEVEL_ERROR) {
                std::fputs(text, stderr);
            }
        },
        nullptr);
    llama_backend_init();
    llama_model_params params = llama_model_default_params();
    // Weights are not repacked: repacked ones have other products.
    params.use_extra_bufts = false;
    std::unique_ptr<llama_model, decltype(&llama_model_free)> model(llama_model_load_from_file(argv[1], params),
                                                                    llama_model_free);
    if (!model) {
        return failed("llama.cpp cannot load it; is the disk full?", argv[1]);
    }
    const int vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model.get()));
    if (vocabulary <= 0) {
        return failed("it has no vocabulary", argv[1]);
    }
    for (const Sequence &sequence : sequences) {
        const int status = compute(model.get(), vocabulary, sequence, argv[2]);
        if (status != 0) {
            return status;
        }
    }
    return 0;
}
