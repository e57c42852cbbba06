/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * tanh_f32.h - tanh of sixteen floats with AVX-512, at most 2 ulp off.
 *
 * |x| falls into one of 32 intervals, found by its exponent and the first two bits of its fraction;
 * all below 1/8 are the first. Each has a polynomial of degree 5 in the distance from its middle
 * (the first: from 0), whose coefficients a permutation of two registers fetches. They are least
 * squares towards the least largest relative error. No branches: all lanes get the same operations.
 */
#ifndef BURN_PLUGINS_FLEX_TANH_F32_H
#define BURN_PLUGINS_FLEX_TANH_F32_H

#include <immintrin.h>

/* Row k: coefficients of the k-th power, for each interval. From 10 on all is 1. */
static const float fm_tanh_table[6][32] = {
    {
        0.0f, 0.1397053f, 0.170202315f, 0.200376719f, 0.230175704f, 0.27406159f, 0.330821127f,
        0.385283977f, 0.437188774f, 0.509829998f, 0.596373558f, 0.670967102f, 0.734071493f,
        0.809301078f, 0.879826725f, 0.925346255f, 0.954045236f, 0.978026092f, 0.991859734f,
        0.996997654f, 0.998894453f, 0.999753177f, 0.999966621f, 0.99999547f, 0.999999404f,
        0.99999994f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f,
    },
    {
        1.0f, 0.980482399f, 0.971031189f, 0.959849179f, 0.9470191f, 0.92489028f, 0.890557408f,
        0.851556301f, 0.808865964f, 0.740073442f, 0.644338608f, 0.549803197f, 0.461138994f,
        0.345031768f, 0.225904986f, 0.143734366f, 0.0897976384f, 0.0434649177f, 0.0162142869f,
        0.00599571504f, 0.00220989226f, 0.000493517378f, 6.68045759e-05f, 9.04127683e-06f,
        1.22360859e-06f, 6.09199091e-08f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f,
    },
    {
        3.11904415e-07f, -0.136896908f, -0.165482655f, -0.192354843f, -0.217743039f,
        -0.253488898f, -0.29469043f, -0.328177005f, -0.353538841f, -0.37736091f, -0.384271652f,
        -0.368956774f, -0.338455081f, -0.279240698f, -0.198771238f, -0.133019865f, -0.0856587961f,
        -0.0425056778f, -0.0160822459f, -0.00597963668f, -0.00220857514f, -0.000491726852f,
        -6.74786352e-05f, -8.7312128e-06f, -1.72531202e-06f, 1.73370125e-07f, 0.0f, 0.0f, 0.0f,
        0.0f, 0.0f, 0.0f,
    },
    {
        -0.333355635f, -0.307117492f, -0.296750754f, -0.281523168f, -0.264520854f, -0.238869101f,
        -0.199590206f, -0.157634139f, -0.114856854f, -0.0543986671f, 0.0143809756f, 0.0642051324f,
        0.094810769f, 0.110972613f, 0.0995675325f, 0.0751613006f, 0.0518027842f, 0.0270877108f,
        0.0105463127f, 0.00396104669f, 0.00146832003f, 0.000328626717f, 4.45031692e-05f,
        6.02385626e-06f, 8.15240071e-07f, 4.0194184e-08f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f,
    },
    {
        0.000472515268f, -0.245853126f, 0.968928814f, 0.216373995f, -0.839774072f, 0.162162423f,
        0.241102844f, 0.258000344f, 0.077739127f, 0.165936589f, 0.120781489f, 0.094452627f,
        0.0295319445f, 0.00394708058f, -0.0202851482f, -0.024141727f, -0.0216355175f,
        -0.0124340802f, -0.00513492897f, -0.00194114412f, -0.000718881842f, -0.000176432543f,
        -2.03137206e-05f, -4.35561196e-06f, 1.58442981e-06f, -2.57428098e-07f, 0.0f, 0.0f, 0.0f,
        0.0f, 0.0f, 0.0f,
    },
    {
        0.129987448f, -2.23569965f, 5.02926874f, 0.550390363f, -3.92696857f, 0.100653477f,
        0.239412725f, 0.200646773f, -0.184361398f, -0.0250659753f, -0.0601432882f, -0.0507428534f,
        -0.0617659241f, -0.0319032781f, -0.00928335823f, 0.00155970966f, 0.00453117955f,
        0.00397704588f, 0.00191475661f, 0.000769948645f, 0.00029234204f, 6.7687004e-05f,
        9.23238804e-06f, 1.24883729e-06f, 1.69074895e-07f, 9.35991284e-09f, 0.0f, 0.0f, 0.0f,
        0.0f, 0.0f, 0.0f,
    },
};

static inline __attribute__((always_inline)) __m512 fm_tanh_power(int power, __m512i interval)
{
    const float *row = fm_tanh_table[power];
    return _mm512_permutex2var_ps(_mm512_loadu_ps(row), interval, _mm512_loadu_ps(row + 16));
}

/* NaN stays NaN by way of the distance; signs of zeros are kept. */
static inline __attribute__((always_inline)) __m512 fm_tanh_16(__m512 x)
{
    const __m512i sign = _mm512_set1_epi32((int)0x80000000u);
    const __m512i first = _mm512_set1_epi32((127 - 3) * 4 - 1);
    __m512 a = _mm512_min_ps(_mm512_set1_ps(10.0f), _mm512_abs_ps(x));
    __m512i bits = _mm512_castps_si512(a);
    __m512i interval = _mm512_subs_epu16(_mm512_srli_epi32(bits, 21), first);
    /* The bits that name the interval, and a one behind them: its middle. */
    __m512i middle = _mm512_ternarylogic_epi32(bits, _mm512_set1_epi32((int)0xffe00000u),
                                               _mm512_set1_epi32(0x00100000), 0xea);
    __mmask16 far = _mm512_cmp_ps_mask(a, _mm512_set1_ps(0.125f), _CMP_NLT_UQ);
    __m512 d = _mm512_mask_sub_ps(a, far, a, _mm512_castsi512_ps(middle));
    __m512 p = fm_tanh_power(5, interval);
    for (int power = 4; power >= 0; power--) {
        p = _mm512_fmadd_ps(p, d, fm_tanh_power(power, interval));
    }
    __m512i with = _mm512_ternarylogic_epi32(_mm512_castps_si512(x), sign, _mm512_castps_si512(p),
                                             0xea);
    return _mm512_castsi512_ps(with);
}

#endif /* BURN_PLUGINS_FLEX_TANH_F32_H */
