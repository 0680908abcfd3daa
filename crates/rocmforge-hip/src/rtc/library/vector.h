// HIP's vector types: `float4`, `make_float4` and so on, with operators of whole vectors and of a vector with a number.
#pragma once

template <typename T, unsigned N> struct __rocmforge_parts;
template <typename T> struct __rocmforge_parts<T, 1> {
    T x;
};
template <typename T> struct alignas(2 * sizeof(T)) __rocmforge_parts<T, 2> {
    T x, y;
};
template <typename T> struct __rocmforge_parts<T, 3> {
    T x, y, z;
};
template <typename T> struct alignas(4 * sizeof(T)) __rocmforge_parts<T, 4> {
    T x, y, z, w;
};

#define RF_VECTOR_MEMBER __host__ __device__ constexpr __attribute__((always_inline))

template <typename T, unsigned N> struct HIP_vector_type : __rocmforge_parts<T, N> {
    typedef T value_type;
    HIP_vector_type() = default;
    RF_VECTOR_MEMBER HIP_vector_type(T all) : __rocmforge_parts<T, N>{} {
        for (unsigned i = 0; i < N; i++) at(i) = all;
    }
    template <typename... Parts, bool fit = sizeof...(Parts) == N && (N > 1), typename = decltype(new (int(*)[fit ? 1 : -1]))>
    RF_VECTOR_MEMBER HIP_vector_type(Parts... parts) : __rocmforge_parts<T, N>{static_cast<T>(parts)...} {}
    RF_VECTOR_MEMBER T& at(unsigned i) {
        if constexpr (N == 1) {
            return this->x;
        } else if constexpr (N == 2) {
            return i == 0 ? this->x : this->y;
        } else if constexpr (N == 3) {
            return i == 0 ? this->x : i == 1 ? this->y : this->z;
        } else {
            return i == 0 ? this->x : i == 1 ? this->y : i == 2 ? this->z : this->w;
        }
    }
    RF_VECTOR_MEMBER T at(unsigned i) const { return const_cast<HIP_vector_type&>(*this).at(i); }
    RF_VECTOR_MEMBER T& operator[](unsigned i) { return at(i); }
    RF_VECTOR_MEMBER T operator[](unsigned i) const { return at(i); }
    RF_VECTOR_MEMBER HIP_vector_type operator+() const { return *this; }
    RF_VECTOR_MEMBER HIP_vector_type operator-() const {
        HIP_vector_type result(*this);
        for (unsigned i = 0; i < N; i++) result.at(i) = (T)-at(i);
        return result;
    }
    RF_VECTOR_MEMBER HIP_vector_type operator~() const {
        HIP_vector_type result(*this);
        for (unsigned i = 0; i < N; i++) result.at(i) = (T)~at(i);
        return result;
    }
    RF_VECTOR_MEMBER HIP_vector_type& operator++() { return *this += HIP_vector_type((T)1); }
    RF_VECTOR_MEMBER HIP_vector_type& operator--() { return *this -= HIP_vector_type((T)1); }
    RF_VECTOR_MEMBER HIP_vector_type operator++(int) {
        HIP_vector_type old(*this);
        ++*this;
        return old;
    }
    RF_VECTOR_MEMBER HIP_vector_type operator--(int) {
        HIP_vector_type old(*this);
        --*this;
        return old;
    }
#define RF_VECTOR_OPERATOR(of)                                                                                           \
    RF_VECTOR_MEMBER HIP_vector_type& operator of##=(const HIP_vector_type& other) {                                     \
        for (unsigned i = 0; i < N; i++) at(i) = (T)(at(i) of other.at(i));                                              \
        return *this;                                                                                                    \
    }                                                                                                                    \
    friend RF_VECTOR_MEMBER HIP_vector_type operator of(HIP_vector_type x, const HIP_vector_type& y) { return x of##= y; }
    RF_VECTOR_OPERATOR(+)
    RF_VECTOR_OPERATOR(-)
    RF_VECTOR_OPERATOR(*)
    RF_VECTOR_OPERATOR(/)
    RF_VECTOR_OPERATOR(%)
    RF_VECTOR_OPERATOR(&)
    RF_VECTOR_OPERATOR(|)
    RF_VECTOR_OPERATOR(^)
    RF_VECTOR_OPERATOR(<<)
    RF_VECTOR_OPERATOR(>>)
    friend RF_VECTOR_MEMBER bool operator==(const HIP_vector_type& x, const HIP_vector_type& y) {
        bool same = true;
        for (unsigned i = 0; i < N; i++) same = same && x.at(i) == y.at(i);
        return same;
    }
    friend RF_VECTOR_MEMBER bool operator!=(const HIP_vector_type& x, const HIP_vector_type& y) { return !(x == y); }
};

#define RF_VECTORS(name, type)                                                                                           \
    typedef HIP_vector_type<type, 1> name##1;                                                                            \
    typedef HIP_vector_type<type, 2> name##2;                                                                            \
    typedef HIP_vector_type<type, 3> name##3;                                                                            \
    typedef HIP_vector_type<type, 4> name##4;                                                                            \
    static RF_VECTOR_MEMBER name##1 make_##name##1(type x) { return name##1(x); }                                        \
    static RF_VECTOR_MEMBER name##2 make_##name##2(type x, type y) { return name##2(x, y); }                             \
    static RF_VECTOR_MEMBER name##3 make_##name##3(type x, type y, type z) { return name##3(x, y, z); }                  \
    static RF_VECTOR_MEMBER name##4 make_##name##4(type x, type y, type z, type w) { return name##4(x, y, z, w); }
RF_VECTORS(char, signed char)
RF_VECTORS(uchar, unsigned char)
RF_VECTORS(short, short)
RF_VECTORS(ushort, unsigned short)
RF_VECTORS(int, int)
RF_VECTORS(uint, unsigned int)
RF_VECTORS(long, long)
RF_VECTORS(ulong, unsigned long)
RF_VECTORS(longlong, long long)
RF_VECTORS(ulonglong, unsigned long long)
RF_VECTORS(float, float)
RF_VECTORS(double, double)
