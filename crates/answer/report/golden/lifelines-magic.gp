set terminal svg size 1200,700 noenhanced
set output 'lifelines.svg'
set xlabel 'ms'
set ytics noenhanced ('DPSS_APP_SEND app' 1, 'DPSS_SERV_IN s1' 2, 'DPSS_SERV_IN s2' 3, 'DPSS_START_READ s1' 4, 'DPSS_START_READ s2' 5, 'DPSS_END_READ s1' 6, 'DPSS_END_READ s2' 7, 'DPSS_START_WRITE s1' 8, 'DPSS_START_WRITE s2' 9, 'DPSS_APP_RECEIVE app' 10)
set yrange [0.5:10.5]
set grid ytics
plot 'lines-0.dat' using 1:2 with lines linecolor 1 title 's1', \
     'flushed-0.dat' using 1:2 with lines linecolor 1 dashtype 2 notitle, \
     'lines-1.dat' using 1:2 with lines linecolor 2 title 's2', \
     'flushed-1.dat' using 1:2 with lines linecolor 2 dashtype 2 notitle, \
     'marks.dat' using 1:2 with points pointtype 2 linecolor 'black' notitle
