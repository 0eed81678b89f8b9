"""What tools do and touch, in two languages.

Each row holds words that a question and a tool may use for one thing; where it has a `>`, the question says what is
before it and the tool what is behind. What is joined by `_` is said as one.
"""

from collections import defaultdict
from collections.abc import Iterator
from functools import cache

from app.search.words import is_chinese, runs

_ROWS = """
搜索 查询 检索 查找 搜 查 找 search query find lookup
获取 读取 查看 得到 拿到 取得 看 get read fetch retrieve view show
列出 列表 清单 罗列 list enumerate all
创建 新建 建立 建 生成 新增 开个 create new make generate add
添加 增加 加入 追加 加上 加 add append insert attach
删除 移除 删掉 清除 去掉 删 delete remove clear erase drop
更新 修改 更改 编辑 变更 改 update edit modify change
设置 设定 配置 set configure config settings
发送 发 推送 群发 通知 告知 send post push notify message
上传 传到 upload put
下载 download save
保存 存储 存 记录 save store write record
写入 写 撰写 write compose
打开 开启 启动 open start launch turn
关闭 停止 关掉 结束 close stop turn off shut end
运行 执行 跑 run execute
重启 重新启动 restart reboot
取消 撤销 撤回 cancel revoke undo revert recall
复制 拷贝 copy duplicate clone
移动 移到 挪 搬 move
重命名 改名 rename name
合并 拼接 merge combine join concatenate
拆分 分割 切分 split divide
比较 对比 差异 区别 compare diff difference
转换 转成 转为 转 互转 换成 convert transform
翻译 译成 translate translation
计算 算 统计 calculate compute count statistics
分析 解析 analyze analysis parse
总结 摘要 概括 summarize summary abstract
提取 抽取 提炼 extract
导出 export
导入 import
分享 共享 share
邀请 invite
评论 留言 点评 comment comments review
回复 答复 reply respond answer
转发 forward share
点赞 喜欢 赞 like
关注 订阅 follow subscribe
收藏 书签 favorite bookmark star
审批 批准 审核 同意 approve approval review
拒绝 驳回 reject decline
提交 submit commit
分配 指派 派给 assign
排序 sort order rank
过滤 筛选 filter
验证 校验 检查 核对 validate verify check
测试 test
部署 发布 上线 deploy publish release
安装 install
登录 登陆 login signin authenticate
注册 register signup
预订 预定 订 预约 book reserve booking reservation appointment
购买 买 下单 buy purchase order
支付 付款 付钱 缴费 pay payment
退款 退货 refund return
推荐 建议 recommend suggest recommendation suggestion
监控 监测 monitor watch
备份 backup
恢复 还原 restore recover
同步 sync synchronize
绘制 画 作图 绘图 draw plot render chart
截图 截屏 快照 screenshot snapshot capture
点击 点 按 click tap press
输入 填写 填 type fill input enter
滚动 scroll
拖动 拖拽 drag
等待 wait
跳转 导航 前往 navigate navigation go
刷新 refresh reload
播放 play
录音 录制 record recording
识别 recognize detect identify ocr
压缩 打包 compress zip
解压 unzip extract decompress
加密 encrypt
解密 decrypt
替换 replace
格式化 排版 format formatting
标记 标注 mark annotate label tag
归档 存档 archive
锁定 锁 lock
连接 接入 connect connection
断开 disconnect
文件 file document
文件夹 目录 文件目录 folder directory
文档 文章 document doc article
云盘 网盘 云文档 drive netdisk cloud storage
知识库 wiki knowledge
图片 图像 照片 相片 图 image picture photo
视频 影片 录像 video movie
音频 声音 audio sound
音乐 歌曲 歌 music song
语音 嗓音 配音 朗读 念 voice speech tts audio
声音克隆 克隆 voice clone
字幕 subtitle caption transcript
弹幕 danmaku
表格 电子表格 spreadsheet table sheet excel
工作表 sheet worksheet
单元格 格子 cell range
公式 formula
透视表 数据透视 pivot
幻灯片 演示文稿 演示 slide presentation powerpoint ppt
段落 paragraph
标题 title heading
脚注 footnote
页眉 页脚 header footer
字体 font
颜色 color
网页 页面 网站 网址 链接 web page website site url link
浏览器 browser
标签页 tab
标签 tag label
按钮 button
表单 form
弹窗 对话框 dialog popup
控制台 console
网络请求 请求 network request
性能 performance
代码 源码 code source
仓库 代码库 repository repo
分支 branch
提交记录 提交历史 历史 commit log history
合并请求 拉取请求 pull merge request pr
工单 缺陷 问题单 故障单 issue bug ticket
问题 issue question problem
需求 requirement story workitem
迭代 冲刺 sprint iteration
版本 version release
流水线 构建 pipeline build job
数据库 库 database db sqlite sql
数据表 表 table
表结构 字段 列 schema field column columns
索引 index
集合 collection
键 key
缓存 cache redis
记录 行 record row
数据 data
日志 log logs
错误 报错 异常 崩溃 error exception crash
服务器 主机 server host
容器 container docker
镜像 image docker
集群 cluster kubernetes
节点 node
进程 process
终端 命令行 命令 terminal shell command
端口 port
域名 domain dns
邮件 邮箱 电邮 信件 email mail gmail inbox
附件 attachment
收件箱 inbox
草稿 draft
联系人 通讯录 contact contacts
消息 信息 短信 message messages
聊天 对话 群聊 会话 chat conversation
群 群组 群聊 group chat channel
频道 channel
机器人 bot robot webhook
用户 人员 成员 user member people
部门 团队 department team
员工 同事 employee colleague user
客户 customer client
权限 授权 permission access
密码 口令 password
账号 账户 account
资料 个人资料 主页 profile
日历 日程 行程 calendar event schedule agenda
会议 开会 例会 meeting event
空闲 有空 忙闲 free busy availability freebusy
活动 event activity
提醒 闹钟 reminder alarm
任务 待办 待办事项 task todo
子任务 subtask
项目 工程 project
看板 board kanban
卡片 card
里程碑 milestone
截止 到期 期限 due deadline
工时 worklog time tracking
计划 规划 plan planning
笔记 便签 备忘 note notes memo
记忆 记住 记得 memory remember
知识图谱 实体 关系 entity relation graph
想法 思考 推理 thinking thought reason
时间 时刻 几点 time clock
日期 几号 哪天 date day
时区 timezone
星期 周 week
今天 today
明天 tomorrow
农历 阴历 黄历 lunar calendar
节日 节假日 假期 放假 holiday festival
生肖 属相 zodiac
吉日 黄道吉日 auspicious
天气 气象 气温 温度 下雨 weather temperature forecast rain
预报 forecast
空气质量 雾霾 air quality aqi
预警 warning alert alarm
地图 map maps
地址 地点 位置 住址 address place location
坐标 经纬度 coordinates latitude longitude geocode
附近 周边 旁边 nearby around near
路线 线路 怎么走 怎么去 route directions direction path
驾车 开车 自驾 driving drive car
步行 走路 walking walk
骑行 骑车 自行车 bicycling cycling bike
公交 公交车 地铁 transit bus subway metro transport
距离 多远 distance
打车 出租车 taxi cab ride
路况 堵车 拥堵 traffic congestion
海拔 elevation altitude
火车 高铁 动车 列车 车次 train railway
车票 火车票 余票 ticket train
车站 站点 station stop
换乘 中转 transfer connection interline
票价 票 fare ticket price
航班 飞机 机票 flight airline plane
机场 airport
酒店 宾馆 旅馆 住宿 民宿 hotel accommodation lodging
景点 景区 旅游 旅行 attraction travel tourism sightseeing
餐厅 饭店 餐馆 restaurant dining
美食 菜 菜谱 食谱 做菜 做饭 recipe food cook dish meal
膳食 一日三餐 每周菜单 meal menu plan
食材 配料 ingredient
商品 产品 货品 product item goods
店铺 商店 shop store
订单 order
价格 多少钱 价 price cost
库存 inventory stock
广告 投放 ad advertising campaign
优惠券 coupon discount
发票 账单 invoice bill
物流 快递 shipping delivery express
股票 股价 股市 个股 stock share equity
行情 报价 quote market price
基金 净值 fund
期货 futures
期权 option options
债券 bond
指数 index
财报 财务 报表 financial statement report finance
利润表 收入 income profit revenue
资产负债 balance sheet
现金流 cash flow
分红 股息 dividend
汇率 外汇 exchange rate currency
货币 币种 人民币 美元 currency money
新闻 资讯 news
热搜 热榜 热门 热点 排行榜 榜单 trending hot trends ranking top
话题 topic
微博 weibo post tweet
帖子 动态 post feed
粉丝 follower fans
博主 作者 up主 author user blogger
论文 文献 学术 paper article research academic
引用 引文 citation reference
作者 author
书 图书 书籍 book
电影 片子 movie film
评分 打分 rating score
百科 wikipedia encyclopedia
法律 法规 法条 条文 law legal statute regulation
合同 contract
医院 医疗 medical hospital
药 药品 drug medicine
图表 统计图 chart graph plot diagram
折线图 走势 line chart trend
柱状图 条形图 bar column chart
饼图 占比 pie chart proportion share
雷达图 radar chart
散点图 scatter chart
流程图 flow diagram flowchart
思维导图 脑图 mind map
词云 word cloud
桑基图 sankey chart
鱼骨图 fishbone diagram
组织架构 组织结构 organization chart department
热力图 heatmap heat map
面积图 area chart
直方图 分布 histogram distribution
地理 区域 行政区 district region area
灯 电灯 照明 light lamp
空调 climate hvac thermostat
设备 device equipment
自动化 automation
场景 scene scenario
家 家居 home
开关 switch toggle
传感器 sensor
仪表盘 看板 dashboard
状态 状况 status state condition
进度 progress
版面 布局 layout
模板 template
主题 theme topic
组件 component
设计稿 设计 design figma
图标 icon
水印 watermark
文字 文本 内容 text content
关键词 关键字 keyword
分词 切词 segment segmentation tokenize
拼音 pinyin
敏感词 sensitive word
字数 count words characters
随机 random
编码 encode encoding
哈希 hash
二维码 qrcode qr code
身份证 id card
电话 手机号 手机 phone number mobile
大小 体积 size
数量 个数 几个 多少 count number amount
详情 详细 明细 detail details info information
历史 以前 history past
最近 最新 recent latest new
全部 所有 all every
批量 多个 batch bulk multiple
当前 目前 current now
帮助 help guide
注释 批注 comment annotation
目录结构 树 tree structure
空白 空 blank empty
发票 invoice
密钥 令牌 secret token key
变量 variable
函数 方法 function method
依赖 dependency package
环境 environment
告警 警报 alert alarm warning
指标 metric metrics
慢查询 slow query explain performance
股价 报价 行情 现价 quote price stock
拉群 拉人 建群 拉到 群 create chat group member
插图 插画 海报 头像 配图 壁纸 image picture generate
第几行 行 列 row column line
未读 新邮件 unread inbox mail email
线上 生产环境 生产 production error issue
报错 出错 出问题 故障 挂了 error issue exception failure
记一下 记下来 记下 备忘 note memory remember observation
会议 改期 通知 message send event
要不要 带伞 冷不冷 热不热 下雪 刮风 穿什么 weather
吃什么 做饭 晚饭 午饭 早饭 下厨 recipe meal cook dish
堵不堵 塞车 traffic road
叫车 叫个车 打的 滴滴 taxi
放几天假 调休 补班 休息日 holiday work
几月初几 初一 十五 农历 lunar
八字 算命 运势 fortune bazi
涨停 跌停 涨 跌 股票 limit stock
怎么做 做法 步骤 recipe step detail
谁 人员 user member author
有哪些 哪些 list all
打开 访问 浏览 open navigate visit
念出来 读出来 朗读 audio speech voice
合同 协议 contract
占多少 比例 百分比 proportion percentage pie
趋势 变化 trend line
对账 流水 transaction
拍照 照片 photo image
扫描 scan
改成 换成 替换 change replace update convert
放到 移到 挪到 move
存成 存到 另存 保存 save export
转成 转换成 变成 convert
多少度 气温 weather temperature
怎么走 路线 route direction
规定 法条 law legal
大家都在聊 热议 热门 trending hot topic
讨论 帖子 回答 discussion content post search
约 安排 预约 schedule event book create
有空 空不空 free busy
提一个 提个 报一个 提交 create issue
上次 上季度 上周 历史 history past
回滚 撤回 rollback undo revert
扩容 缩容 副本 scale replica
进容器 容器 exec container pod
权限 谁能看 permission access share
涨粉 粉丝 follower fan
音色 嗓音 声音 voice
动图 短片 视频 video generate
台账 报表 report sheet
下单 买 购买 order
发货 到哪了 物流 快递 logistics tracking
差评 好评 评价 评论 review comment
库里 数据库 database
跑一下 跑 执行 run execute
挂掉 杀掉 停掉 停止 kill stop terminate
看板 卡片 board card
分词 切词 segment
敏感 违禁 sensitive
单位 换算 convert
密码 随机密码 password generate
remove delete erase wipe trash discard drop purge
create add new make open start
find search look locate discover lookup
show get view display list see read what
change update edit modify set adjust
picture image photo illustration drawing
folder directory path
email mail message inbox
meeting event appointment calendar
task todo issue item ticket card
repo repository project
site website page url web
directions route navigation way trip
movie film video
buy purchase order
cost price fare quote
bug issue error ticket defect
note page document memo
chat message conversation dm thread
late delay status
graph chart plot visualize diagram
crash error exception failure issue
reply respond answer
undo revert reset rollback restore
recipe dish cook meal food
colleague coworker teammate member user people staff
speak speech voice say aloud tts audio
type fill input enter
press click key tap
window browser tab page
spreadsheet excel sheet workbook
presentation powerpoint slide deck
restart reboot rollout
pod container kubernetes
forget delete memory
download save export fetch
far distance
paper article research arxiv preprint study publication
stock share company financial
currency exchange rate convert money
run execute invoke
compare diff difference change
deploy publish release host launch
shop store restaurant place
sum total add calculate aggregate
average mean median statistics
summary overview summarize outline abstract
remind reminder due todo task
reschedule move update event
invite attendee participant guest
cite citation reference bibliography
replica scale instance
log output console
history log commit revision
person user member contact
assign assignee owner
finish complete close done resolve
reopen open
tag label
star favorite bookmark
watch monitor notify alert subscribe
alert alarm notification warning
permission access share role
password protect lock encrypt
login authenticate sign credential
install add plugin package
upgrade update version
backup snapshot export
test check verify validate
duplicate copy clone
rename name move
upload attach attachment file
resize size width height
rotate crop image
bold italic font format style
paragraph text line
heading title header
footer footnote endnote
row line record
column field
cell range value
formula calculate function
filter query search
sort order rank
group aggregate pivot
join merge combine union
split divide separate
translate language
convert format transform export
draw generate image chart diagram
music song track audio play
subtitle caption transcript
record capture recording
screenshot capture image snapshot
scroll mouse page
navigate go open visit url
network request http api
javascript script code evaluate
element button selector
form field input fill
cookie storage session
cache key set expire ttl
queue stream message
index search mapping
schema structure describe table field
database db sql mongodb sqlite
table collection
document record entry row
count number many
slow performance explain trace profile
memory heap
server host node machine
cluster node kubernetes
container docker image
job build pipeline run
branch checkout
stage add index
commit save change push
fork copy clone
review approve comment feedback
milestone version release
sprint iteration
backlog sprint issue
board kanban list
checklist subtask item
worklog effort time hours log
deadline due date
weather forecast temperature rain snow wind
city place location
coordinate latitude longitude geocode
address geocode location place
nearby near around close
walk walking foot
drive driving car
bike bicycling cycling
train railway ticket
flight airline plane airport
hotel accommodation stay room
altitude elevation height
timezone time clock
holiday festival day
moon lunar
zodiac horoscope fortune
news headline article
trend trending hot popular
post feed tweet publish
follower fan
profile user about account
product item goods
order purchase
refund return
review rating comment
inventory stock
invoice bill payment
law statute legal regulation
thought think reasoning step
knowledge graph entity relation
remember memory store knowledge observation note
encyclopedia wikipedia
txt text file > file text read
md markdown > file text
docx doc > word document
xlsx xls csv > excel workbook spreadsheet
pptx ppt > presentation slide powerpoint
png jpg jpeg svg gif > image
mp3 wav > audio
mp4 mov > video
zip tar > archive compress
contents inside > read text content file
big size large > size
umbrella cold warm sunny > weather
tell inform announce say > send post message notify
know notified notice > notify alert monitor watch
everyone all team > list members users
pr prs > pull_request
mr mrs > merge_request
ci cd > status check build pipeline
passed green failing failed broken > status build test failure
jira confluence > atlassian
kubectl k8s > kubernetes
mongo > mongodb
postgres mysql > sql database
gh > github
calls traffic > request network
changed changes modified > diff change update
progress > status transition
older newer before after since > date filter range
recent latest newest last > list latest recent date
mine my > current user
broken wrong problem fails > error issue failure
production live prod > error issue deploy
colour color red green blue > color format
best optimal shortest > optimize route
reach reachable > isochrone distance
tomorrow today yesterday week > date events
"""


@cache
def _senses() -> dict[str, tuple[str, ...]]:
    """Each word with those that may be said for it, in the order of the rows."""
    found: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for row in _ROWS.strip().split("\n"):
        said, _, meant = row.partition(" > ")
        for word in said.split():
            found[word] |= dict.fromkeys((meant or said).split())
    return {word: tuple(other for other in others if other != word) for word, others in found.items()}


@cache
def _longest() -> int:
    return max(len(word) for word in _senses() if is_chinese(word))


def senses(word: str) -> tuple[str, ...]:
    """What else may be said for an English word, also where it has an ending."""
    known = _senses()
    return next((known[stem] for stem in _stems(word) if stem in known), ())


def known_in(text: str) -> list[str]:
    """The Chinese words of a text that have a row, the longest at each place, each once."""
    found: dict[str, None] = {}
    for run in runs(text):
        at = 0
        while at < len(run):
            word = _word_at(run, at)
            found |= {word: None} if word else {}
            at += len(word) or 1
    return list(found)


def _word_at(run: str, at: int) -> str:
    known = _senses()
    sizes = range(min(_longest(), len(run) - at), 0, -1)
    return next((run[at : at + size] for size in sizes if run[at : at + size] in known), "")


def _stems(word: str) -> Iterator[str]:
    yield word
    for ending, instead in (("ies", "y"), ("es", ""), ("s", ""), ("ing", ""), ("ing", "e"), ("ed", ""), ("ed", "e")):
        if word.endswith(ending) and len(word) - len(ending) > 2:
            stem = word.removesuffix(ending) + instead
            yield stem
            if len(stem) > 3 and stem[-1] == stem[-2]:
                yield stem[:-1]
